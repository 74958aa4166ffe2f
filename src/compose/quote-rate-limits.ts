import type { Config } from '#config.ts'
import { createQuoteBudget, type QuoteBudget, unlimitedQuotes } from '#kernel/async/quote-rate-shares.ts'
import { monotonicMs } from '#kernel/clock.ts'

/** The limits of the providers of routes, as they publish them; the local ones have none. */

type Provider = { name: string; title: string; windowMs: number; withoutKey: number; withKey: number }
type Setting = { url: string | undefined; key: string | undefined; limit: number | undefined }

const minuteMs = 60_000
const relay = { name: 'relay', title: 'the solver', windowMs: minuteMs, withoutKey: 50, withKey: 600 }
const lifi = { name: 'lifi', title: 'LI.FI', windowMs: 120 * minuteMs, withoutKey: 75, withKey: 12_000 }

function budgetOf(provider: Provider, { url, key, limit }: Setting): QuoteBudget {
  const documented = key === undefined ? provider.withoutKey : provider.withKey
  const max = limit ?? (url === 'local' ? 0 : documented)
  return max === 0
    ? unlimitedQuotes
    : createQuoteBudget({ max, windowMs: provider.windowMs, provider, nowMs: monotonicMs })
}

export const relayQuotes = ({
  RELAY_URL: url,
  RELAY_API_KEY: key,
  RELAY_QUOTES_PER_MINUTE: limit,
}: Config): QuoteBudget => budgetOf(relay, { url, key, limit })

export const lifiQuotes = ({
  LIFI_URL: url,
  LIFI_API_KEY: key,
  LIFI_QUOTES_PER_TWO_HOURS: limit,
}: Config): QuoteBudget => budgetOf(lifi, { url, key, limit })
