/** Of any load. Absent numbers are 0. The fields are those of CyclesSettings and CallersSettings in loads/. */
record Settings(
    int callers,
    int keysEach,
    int keys,
    double work,
    double workJitter,
    int permits,
    int readers,
    double pause,
    double pauseJitter,
    int together) {
}
