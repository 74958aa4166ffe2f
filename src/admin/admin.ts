import { userInfo } from 'node:os'
import { ConfigRefused, readConfig } from '#config.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { InUse } from '#start/data-dir-lock.ts'
import { toStartupError } from '#start/database-startup-error.ts'
import { StoreRefusal } from '#store/operator-error.ts'
import { readArguments, UsageError } from './arguments.ts'
import { commands, helpLines } from './commands.ts'
import { openSession } from './session.ts'

const printLine = (line: string) => process.stdout.write(`${line}\n`)

async function main(argv: string[]): Promise<void> {
  if (argv.length === 0 || argv[0] === 'help' || argv[0] === '--help') {
    for (const line of helpLines()) printLine(line)
    return
  }
  const { usage: command, by, why, json, args } = readArguments(argv, commands)
  if (command.changes !== false && why === undefined)
    throw new UsageError(`${command.name} requires --why: the reason is recorded.`)
  const config = readConfig()
  const options = { config, actor: by ?? userInfo().username, reason: why ?? null, json, printLine }
  if (command.runAlone) return command.runAlone(options, args)
  await using parts = new AsyncDisposableStack()
  const session = await openSession(options, parts).catch((error: unknown) => {
    throw toStartupError(error, config)
  })
  await command.run(session, args)
}

const expected = [UsageError, StoreRefusal, InUse, Fault]

main(process.argv.slice(2)).catch((error: unknown) => {
  const problems = error instanceof ConfigRefused ? error.problems : [sentenceOf(error)]
  for (const problem of problems) process.stderr.write(`portico admin: ${problem}\n`)
  process.exitCode = 1
})

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return expected.some((kind) => error instanceof kind) ? error.message : (error.stack ?? error.message)
}
