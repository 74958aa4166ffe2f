import type { Settings } from './state.ts'

/** Limits of connections and subscribed users per address; a limit of 0 is none. */
export type StreamLimits = {
  /** False while the address, which has so many connections, must wait. A rejected attempt is not counted. */
  canConnect: (address: string, connections: number, nowMs: number) => boolean
  /** Whether an address may subscribe one more user, over all its connections. */
  canSubscribe: (users: readonly string[], user: string) => boolean
}

const minuteMs = 60_000

export const createStreamLimits = (settings: () => Settings): StreamLimits => {
  const opened = new Map<string, number[]>()
  const within = (count: number, limit: number | undefined): boolean => !limit || count < limit
  return {
    canConnect: (address, connections, nowMs) => {
      const { wsConnectionsPerAddress, wsNewPerMinute } = settings()
      const recent = (opened.get(address) ?? []).filter((at) => at > nowMs - minuteMs)
      const isAllowed = within(connections, wsConnectionsPerAddress) && within(recent.length, wsNewPerMinute)
      opened.set(address, isAllowed ? [...recent, nowMs] : recent)
      return isAllowed
    },
    canSubscribe: (users, user) =>
      users.includes(user) || within(new Set(users).size, settings().wsUsersPerAddress),
  }
}
