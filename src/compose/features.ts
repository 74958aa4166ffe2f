import type { Config } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { queueFacts } from '#durable/load.ts'
import type { Transactions } from '#durable/transactions.ts'
import { viewOf } from '#durable/view.ts'
import { accessTopic, gapTopic, revokedHash, revokedTopic } from '#durable/wake.ts'
import { auth as makeAuth } from '#features/auth/auth.ts'
import { chains as chainList } from '#features/chains/chains.ts'
import type { Probe } from '#features/chains/probe.ts'
import { credits as makeCredits } from '#features/credits/credits.ts'
import { discovery } from '#features/discovery/discovery.ts'
import { healthCheck } from '#features/discovery/health.ts'
import { snapshotKind } from '#features/earn/snapshot.ts'
import { notifications } from '#features/notifications/notifications.ts'
import { tasks } from '#features/tasks/tasks.ts'
import { user } from '#features/user/user.ts'
import { welcomeAdmission, welcomeFunding } from '#features/wallets/funding.ts'
import { type Holdings, holdings as makeHoldings } from '#features/wallets/holdings.ts'
import { seenTokens } from '#features/wallets/holdings-seen.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { wallets } from '#features/wallets/wallets.ts'
import type { Chain } from '#kernel/chains.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Net } from '#kernel/net.ts'
import type { Operation } from '#kernel/operation.ts'
import type { TaskKind } from '#kernel/task.ts'
import type { UpstreamUrls } from '#start/place.ts'
import { faucet } from '#upstreams/faucet/faucet.ts'
import { prices } from '#upstreams/prices/prices.ts'
import type { Chains } from './chains.ts'
import type { Custody, KeyWatch } from './custody.ts'
import { openEarn } from './earn.ts'
import { perpLimitsOf } from './settings.ts'
import type { Stores } from './store.ts'
import type { Venue } from './venue.ts'
import { openVenueSections } from './venue-sections.ts'

type Needs = {
  config: Config
  urls: UpstreamUrls
  transactions: Transactions
  stores: Stores
  ground: Ground
  net: Net
  chains: Chains
  custody: Custody
  venue: Venue | undefined
  probe: Probe
  keyWatch: KeyWatch
  log: Log
  baseUrl: () => string
}

/** The version of the interface, which the document and the health report carry. */
const version = '1.0.0'
const protocols = ['http', 'sse']

function openAuth(
  { config, stores, ground, custody, chains, baseUrl }: Needs,
  welcome: TaskKind | undefined,
) {
  const on = stores.database.pool
  const credits = makeCredits({ on, ledger: ground.ledger, clock })
  const auth = makeAuth({
    on,
    transact: ground.transact,
    clock,
    random,
    baseUrl,
    keystore: custody.keystore,
    tokenTtlMs: config.TOKEN_TTL_SECONDS * 1000,
    grantSignup: credits.grantSignup,
    publishRevoked: async (userId, hashes) =>
      ground.wake.proclaim([...hashes.map(revokedTopic), accessTopic(userId)]),
    welcome: async (tx, { userId, wallets: own }) => {
      if (!welcome) return
      const admission = welcomeAdmission(own, chains.table)
      await ground.enqueue(tx, { userId, kind: welcome, input: {}, admission })
    },
  })
  ground.wake.each((topic) => {
    if (topic === gapTopic) auth.forgetTokens()
    const hash = revokedHash(topic)
    if (hash !== undefined) auth.onRevoked(hash)
  })
  return { auth, credits }
}

export function openFeatures(needs: Needs) {
  const { config, urls, transactions, stores, ground, net, chains, custody, venue, probe, log, baseUrl } =
    needs
  const { table, readers } = chains
  const on = stores.database.pool
  const earn = openEarn({ config, log, chains, stores, ground, custody, holdings: () => holdings })
  const holdings: Holdings = makeHoldings({
    chains: readers,
    prices: prices({ url: urls.prices ?? '', net, clock }),
    share: earn?.share ?? null,
    walletsOf: (userId) => walletsOf(on, userId),
    seenTokens: (userId) => seenTokens(on, userId),
    clock,
  })
  const changed = (userId: string, chainId: string) => holdings.invalidate(userId, chainId)
  const sections = openVenueSections({ config, venue, chains, stores, ground, custody, log, changed })
  const welcome = urls.faucet
    ? welcomeFunding({ faucet: faucet({ url: urls.faucet, net }), changed })
    : undefined
  const { auth, credits } = openAuth(needs, welcome)
  const health = healthCheck({
    version,
    environment: config.ENVIRONMENT,
    clock,
    store: () => on.query('select 1'),
    runner: () => queueFacts(transactions, clock),
    custody: needs.keyWatch.status,
    upstreams: async () =>
      Object.fromEntries([
        ...table.map(
          ({ id, name }) => [name, { status: probe.status(id), lastOkAt: probe.lastOkAt(id) }] as const,
        ),
        ...(venue ? [['hyperliquid', venue.health()] as const] : []),
      ]),
  })
  const facts = factsOf(config, table)
  const operations: Operation[] = [
    ...discovery({ operations: () => operations, facts, protocols, health }),
    ...chainList({ table, status: probe.status }),
    ...auth.operations,
    ...wallets({ table, holdings, walletsOf: (userId) => walletsOf(on, userId) }),
    ...(earn?.operations ?? []),
    ...(sections?.operations ?? []),
    ...tasks({ tasks: ground.tasks, view: (task) => viewOf(task, baseUrl()) }),
    ...credits.operations,
    ...user({ on, walletsOf, credits, policySummary: custody.policy.summary }),
    ...notifications({ events: ground.events }),
    ...custody.policy.operations,
  ]
  const kinds = [
    ...(welcome ? [welcome] : []),
    ...(earn ? [snapshotKind(earn.snapshot), earn.audit] : []),
    ...(sections?.kinds ?? []),
  ]
  return { operations, kinds, auth, health, earn, spotWatch: sections?.watch }
}

const factsOf = (config: Config, table: readonly Chain[]) => ({
  chains: { ids: table.map(({ id }) => id) },
  earn: {
    asset: 'USDC',
    chain_id: config.EARN_CHAIN_ID,
    min_deposit_usdc: config.EARN_MIN_DEPOSIT_USDC,
    min_withdraw_usdc: config.EARN_MIN_WITHDRAW_USDC,
  },
  perp: {
    venue: 'hyperliquid',
    min_order_usd: perpLimitsOf(config).minOrderUsd,
    min_fund_usd: perpLimitsOf(config).minFundUsd,
    min_withdraw_usd: perpLimitsOf(config).minWithdrawUsd,
    bracket: true,
  },
  spot_venue: {
    venue: 'hyperliquid',
    quote: 'USDC',
    min_order_usd: perpLimitsOf(config).minOrderUsd,
    bracket: true,
    triggers_kept_by: config.HYPERLIQUID_SPOT_TRIGGERS,
  },
  wallets: { kinds: ['evm', 'solana'], transfer_out: false },
  notifications: { stream: true, rest: true, webhooks: false, retention_days: 7 },
  auth: {
    schemes: ['keypair'],
    scopes: ['read', 'chat', 'trade', 'earn', 'manage'],
    token_ttl_seconds: config.TOKEN_TTL_SECONDS,
  },
})
