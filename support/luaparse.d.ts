declare module 'luaparse' {
  interface Options {
    readonly luaVersion: '5.1';
    readonly comments: boolean;
    /** Finds the global variables. */
    readonly scope: boolean;
  }

  interface Chunk {
    readonly globals: readonly { readonly name: string }[];
  }

  /** Throws a SyntaxError with line and column. */
  export function parse(text: string, options: Options): Chunk;
}
