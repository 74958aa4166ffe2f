import type { Arguments, Usage } from './arguments.ts'
import type { Session, SessionOptions } from './session.ts'

export type AdminCommand = Usage & {
  summary: string
  /** A command requires --why, unless it is stated to change nothing. */
  changes?: false
  run(session: Session, args: Arguments): Promise<void>
  /** Replaces `run` for a command that must start while no server runs. */
  runAlone?: (options: SessionOptions, args: Arguments) => Promise<void>
}
