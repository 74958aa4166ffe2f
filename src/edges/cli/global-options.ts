import type { Command as Program } from 'commander'
import type { Command } from './commands.ts'
import type { Options } from './operation-input.ts'

/** The operation that a run calls, which words its errors, and the exit code of the run. */
export type Chosen = { code: number; command?: Command }

/**
 * Adds the options that every command has. They also stand before the command and before the section, where `--json`
 * takes no value, because it could not be distinguished from the name that follows.
 */
export const addGlobalOptions = (program: Program, json: '--json' | '--json [input]'): Program =>
  program
    .option(
      json,
      json === '--json'
        ? 'print JSON'
        : 'print JSON; with @file, @- or an object also read the input from it',
    )
    .option('--jsonl', 'print JSON, one line per item')
    .option('--wide', 'print every field, exact, in lines of any length')
    .option('--base-url <url>', 'address of the gateway (PORTICO_URL)')
    .option('--retries <count>', 'repeats after lost connections and overload (default 2)')

/** The options of a command, and of what stands before it, of which the nearest win. */
export const optionsOf = (program: Program): Options => ({
  ...(program.parent ? optionsOf(program.parent) : {}),
  ...program.opts<Options>(),
})
