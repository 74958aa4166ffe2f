import type { Arguments, Usage } from './arguments.ts'
import type { Session, SessionOptions } from './session.ts'

export type AdminCommand = Usage & {
  summary: string
  /** Needs --why. */
  changes: boolean
  run(session: Session, args: Arguments): Promise<void>
  /** In place of `run`, for what has to begin while no server runs. */
  runAlone?: (options: SessionOptions, args: Arguments) => Promise<void>
}
