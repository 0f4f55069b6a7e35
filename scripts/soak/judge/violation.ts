export interface Violation {
  readonly kind: string;
  readonly text: string;
  /** When, on the clock that all processes of the machine share. */
  readonly at: number;
  readonly key?: string;
  /** The calls whose leases it is about. */
  readonly calls?: readonly string[];
}
