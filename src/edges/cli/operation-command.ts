import { Option, type Command as Program } from 'commander'
import { callOperation } from './call-operation.ts'
import type { Command, Field } from './commands.ts'
import { fitted, usageText } from './error-text.ts'
import { inFlags } from './flag-language.ts'
import { addGlobalOptions, type Chosen, optionsOf } from './global-options.ts'
import { formOf } from './output-form.ts'
import type { Terminal } from './terminal.ts'

/** Adds the command of an operation; its arguments, options and help are read from the contract. */
export function addOperation(section: Program, command: Command, terminal: Terminal, chosen: Chosen): void {
  const { verb: name, summary, description, fields, waitSeconds, isStream } = command
  const verb = section
    .command(name)
    .summary(summary)
    .description(inFlags(`${summary}.\n\n${description}`, command))
  for (const field of fields)
    if (field.isPath) verb.argument(`[${field.name}]`, inFlags(field.description, command))
    else verb.addOption(optionOf(field, command))
  if (waitSeconds !== undefined) {
    verb.option('--wait', 'wait until the task has ended')
    if (!fields.some(({ flag }) => flag === 'timeout'))
      verb.option('--timeout <seconds>', `how long --wait waits, from 5 to 90 (default ${waitSeconds})`)
  }
  if (isStream) verb.option('--items <count>', 'end after this many events')
  addGlobalOptions(verb, '--json [input]')
  if (command.isKeyed) verb.option('--idempotency-key <key>', 'repeat a call under the key of the first one')
  verb.showSuggestionAfterError(false).configureOutput({
    outputError: (text, write) => write(fitted(usageText(text, formOf(optionsOf(verb)), verb), terminal)),
  })
  verb.action(async () => {
    chosen.command = command
    chosen.code = await callOperation(terminal, {
      command,
      options: optionsOf(verb),
      positional: verb.args,
    })
  })
}

/**
 * Help and completion show the values that an option allows. The command line does not check the value, because the
 * gateway checks every option.
 */
function optionOf(field: Field, command: Command): Option {
  const { flag, type, choices, isList, description } = field
  const value = type === 'boolean' ? '[true|false]' : `<${type}${isList ? '...' : ''}>`
  const shown = choices.length > 0 ? ` (${choices.join(', ')})` : ''
  const preset = field.default === undefined ? '' : ` (default ${field.default})`
  return new Option(
    `--${flag} ${value}`,
    `${inFlags(description, command)}${isList ? ', repeatable' : ''}${shown}${preset}`.trimStart(),
  )
}
