import type { ChainHealth } from '#features/chains/chain-health.ts'
import type { NamedUniverse } from '#features/chat/universe.ts'
import type { Holdings } from '#features/wallets/holdings.ts'
import type { InnerCalls } from '#invoke/inner-calls.ts'
import type { Clock } from '#kernel/clock.ts'
import type { ModelPrices } from '#kernel/money/model-token-prices.ts'
import type { Answerer } from '#kernel/wire/chat-answerer.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import type { Mails } from './mails.ts'
import type { UpstreamUrls } from './upstream-urls.ts'
import type { Venue } from './venue.ts'

/** The parts of which sections are built; each section names those that it needs. */
export type Parts = {
  core: Core
  /** The clock of schedules; tasks, tokens, approvals and retention use the clock of the core. */
  scheduleClock: Clock
  urls: UpstreamUrls
  net: Net
  chains: Chains
  custody: Custody
  venue: Venue | undefined
  probe: ChainHealth
  /** Posts webhooks to the addresses of users. */
  webhookHttp: GuardedFetch
  imageFiles: GuardedFetch
  mails: Mails
  /** The prices of the tokens of the configured model; undefined if there is no model. */
  modelPrices: ModelPrices | undefined
  agent: Answerer
  universe: () => Promise<NamedUniverse>
  /**
   * Returns what calls operations for a user. It is a function, because these calls exist only once all features are
   * built.
   */
  innerCalls: () => InnerCalls
}

/** All parts, together with those that several sections read: prices, and the holdings of users. */
export type SharedParts = Parts & {
  prices: Prices
  /** These prices are at most as old as the interval of the watch that compares them with orders. */
  orderPrices: Prices
  holdings: Holdings
  /** Called when a receipt changed the balances of a user's wallet. */
  changed: (userId: string, chainId: string) => void
}
