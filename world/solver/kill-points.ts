/** Moments at which a test kills the solver, in the order in which a deposit passes them. */
export const killPoints = [
  'deposit-seen',
  'deposit-stored',
  'fill-signed',
  'fill-stored',
  'fill-sent',
  'fill-mined',
  'refund-signed',
  'refund-stored',
  'refund-sent',
  'refund-mined',
] as const

export type KillPoint = (typeof killPoints)[number]

export type KillSwitch = {
  /** The process dies when it reaches the point. */
  set: (point: KillPoint) => void
  reach: (point: KillPoint) => void
}

export const createKillSwitch = (): KillSwitch => {
  let chosen: KillPoint | undefined
  return {
    set: (point) => {
      chosen = point
    },
    reach: (point) => {
      if (point === chosen) process.kill(process.pid, 'SIGKILL')
    },
  }
}
