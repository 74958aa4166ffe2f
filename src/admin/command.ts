import type { Arguments, Usage } from './arguments.ts'
import type { Session, SessionOptions } from './session.ts'

export type AdminCommand = Usage & {
  summary: string
  /** Set to false for a command that changes nothing; every other command requires --why. */
  changes?: false
  run(session: Session, args: Arguments): Promise<void>
  /** Replaces `run` for a command that must start while no server runs. */
  runAlone?: (options: SessionOptions, args: Arguments) => Promise<void>
}
