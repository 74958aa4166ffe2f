import { accountCommands } from './accounts.ts'
import { usageLine } from './arguments.ts'
import { backupCommands } from './backup.ts'
import type { AdminCommand } from './command.ts'
import { keyCommands } from './keys.ts'
import { logCommands } from './log.ts'
import { positionCommands } from './positions.ts'
import { psqlCommands } from './psql.ts'
import { sponsorCommands } from './sponsors.ts'
import { taskCommands } from './tasks.ts'
import { userCommands } from './users.ts'

export const commands: readonly AdminCommand[] = [
  ...taskCommands,
  ...accountCommands,
  ...positionCommands,
  ...userCommands,
  ...keyCommands,
  ...sponsorCommands,
  ...backupCommands,
  ...psqlCommands,
  ...logCommands,
]

export function helpLines(): string[] {
  const lines = commands.flatMap((command) => [`  ${usageLine(command)}`, `      ${command.summary}`])
  return [
    'Usage: npm run admin -- <command> [--by <name>] [--why <reason>] [--json]',
    '',
    'Works on the database that the settings name, also while gateways run. Every use is recorded; what changes',
    'something needs --why. --by names the operator, otherwise the account of the system does.',
    '',
    ...lines,
  ]
}
