import type { Cell } from '../../../support/grounds/cell';
import { bundlerCells } from './bundlers';
import { frameworkCells } from './frameworks';
import { runnerCells } from './runners';
import { runtimeCells } from './runtimes';
import { serverCells } from './servers';
import { typescriptCells } from './typescript';
import { workerCells } from './workers';

/** Everything that is run, in this order. */
export const CELLS: readonly Cell[] = [
  ...runtimeCells,
  ...workerCells,
  ...serverCells,
  ...bundlerCells,
  ...typescriptCells,
  ...runnerCells,
  ...frameworkCells,
];
