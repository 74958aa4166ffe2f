import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { createWindowCounter } from '#kernel/async/window-counter.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import type { Chain } from './chains.ts'
import type { Assessment } from './token-security.ts'

/** Who asks for a report; `isTrade` is true if a trade follows at once. */
export type ReportTurn = { user: string; isTrade: boolean }
/** A service that judges tokens. It throws a fault if it gives no answer. */
export type TokenReports = {
  source: string
  covers(chain: Pick<Chain, 'id' | 'family'>): boolean
  report(chain: Pick<Chain, 'id' | 'family'>, address: string, turn: ReportTurn): Promise<Assessment>
}

type Service = {
  source: string
  covers: TokenReports['covers']
  urlOf(chain: Pick<Chain, 'id' | 'family'>, address: string): string
  /** Reads an untrusted reply; `status` is the HTTP status. */
  assess(reply: { status: number; body: unknown }, address: string): Assessment
}
type Options = {
  net: Net
  requestsPerMinute?: number
  nowMs?: () => number
}

const timeoutMs = 2_500
const freshMs = 30_000
const maxBytes = 1024 * 1024
const entriesMax = 5_000
const pauseMsMax = 60_000
const pauseMsDefault = 5_000
const minuteMs = 60_000
const usersMax = 10_000
/** The percentages of a minute's requests that all checks outside trades, and the trades of one user, may use. */
const checksShare = 50
const traderShare = 25

/** Asks one service over HTTP, within limits of time, size and number, and pauses if the service asks for that. */
export function createTokenReports(service: Service, options: Options): TokenReports {
  const { net, requestsPerMinute = 60, nowMs = monotonicMs } = options
  const { source, covers, urlOf, assess } = service
  const cache = createTtlCache<Assessment>({ ttlMs: freshMs, entriesMax, nowMs })
  const requests = createWindowCounter({ keysMax: usersMax, nowMs })
  let pausedUntilMs = 0

  /**
   * Counts a request. Checks, and the trades of one user, leave requests for other trades, because a report can
   * only refuse a token.
   */
  const take = ({ user, isTrade }: ReportTurn): void => {
    const [part, share] = isTrade ? [`user ${user}`, traderShare] : ['checks', checksShare]
    const partMax = Math.max(1, Math.floor((requestsPerMinute * share) / 100))
    const isPartUsedUp = requests.count(part) >= partMax
    if (requests.count('all') >= requestsPerMinute || isPartUsedUp)
      throw new Fault('unavailable', `The requests to ${source} of this minute are used up`, {
        extras: { budget: 'reports', budget_of: isTrade && isPartUsedUp ? 'account' : 'gateway' },
      })
    for (const each of ['all', part]) requests.add(each, minuteMs)
  }

  const ask = async (chain: Pick<Chain, 'id' | 'family'>, address: string): Promise<Assessment> => {
    const { status, body, retryAfterMs } = await net.fetch({
      url: urlOf(chain, address),
      method: 'GET',
      headers: { accept: 'application/json' },
      timeoutMs,
      maxBytes,
    })
    if (status === 429 || status === 503)
      pausedUntilMs = nowMs() + Math.min(retryAfterMs ?? pauseMsDefault, pauseMsMax)
    if (status === 429 || status >= 500)
      throw new Fault('unavailable', `${source} answered with status ${status}`)
    const json = parseJson(body)
    if (json === undefined)
      throw new Fault('unavailable', `${source} answered with something that is not JSON`)
    return assess({ status, body: json }, address)
  }

  return {
    source,
    covers,
    /** The share of a user is checked outside the cached load, because several users may share one load. */
    async report(chain, address, turn) {
      const key = `${chain.id}:${address}`
      const shared = cache.peek(key) ?? cache.loading(key)
      if (shared) return shared
      if (pausedUntilMs > nowMs())
        throw new Fault(
          'unavailable',
          `${source} limits our requests now: repeat the security check in a minute`,
        )
      take(turn)
      return cache.get(key, () => ask(chain, address))
    },
  }
}

export const isShareUsedUp = (error: unknown): boolean =>
  error instanceof Fault && error.extras.budget === 'reports' && error.extras.budget_of === 'account'

const textMax = 120

/** Makes one bounded line of foreign text, without characters that change how it is displayed. */
export const foreignText = (value: unknown): string =>
  typeof value === 'string'
    ? value
        .slice(0, textMax * 2)
        .normalize('NFKC')
        .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '')
        .slice(0, textMax)
    : ''
