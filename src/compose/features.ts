import type { ChatModels } from '#agent/models.ts'
import type { Config } from '#config.ts'
import {
  accessTopic,
  gapTopic,
  revokedHash,
  revokedTopic,
  userOfAccessTopic,
} from '#durable/events/notifier.ts'
import { toTaskFullView } from '#durable/task/task-view.ts'
import { readQueueStats } from '#durable/upkeep/queue-stats.ts'
import { auth as makeAuth } from '#features/auth/auth.ts'
import type { OnSignup } from '#features/auth/register.ts'
import type { ChainHealth } from '#features/chains/chain-health.ts'
import { chains as chainList } from '#features/chains/chains.ts'
import { credits as makeCredits } from '#features/credits/credits.ts'
import { creditGrant } from '#features/credits/grant.ts'
import { signupGrants } from '#features/credits/signup-grants.ts'
import { discovery } from '#features/discovery/discovery.ts'
import { healthCheck } from '#features/discovery/health.ts'
import { snapshotKind } from '#features/earn/snapshot.ts'
import { createSignInLimits } from '#features/oauth/sign-in-limits.ts'
import { security as makeSecurity } from '#features/security/security.ts'
import { swapLimits } from '#features/swap/route/limits.ts'
import { tasks } from '#features/tasks/tasks.ts'
import { user } from '#features/user/user.ts'
import { createFaucetGrant, faucetGrantAdmission } from '#features/wallets/faucet-grant.ts'
import { type Holdings, holdings as makeHoldings } from '#features/wallets/holdings.ts'
import { recentTokens } from '#features/wallets/recent-tokens.ts'
import { walletsOf } from '#features/wallets/store.ts'
import type { InnerCalls } from '#invoke/inner-calls.ts'
import { hasTask, type Operation } from '#kernel/contract/operation.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { TokenReports } from '#kernel/money/token-reports.ts'
import type { TaskKind } from '#kernel/task/task.ts'
import type { Answerer } from '#kernel/wire/answerer.ts'
import type { Net } from '#kernel/wire/net.ts'
import { release } from '#release.ts'
import { coinbase } from '#upstreams/coinbase/coinbase.ts'
import { faucet } from '#upstreams/faucet/faucet.ts'
import type { GuardedFetch } from '#upstreams/guarded-fetch/guarded-fetch.ts'
import { honeypot } from '#upstreams/honeypot/honeypot.ts'
import { prices } from '#upstreams/prices/prices.ts'
import { rugCheck } from '#upstreams/rugcheck/rugcheck.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import { openBridge } from './bridge.ts'
import type { Chains } from './chains.ts'
import { type ChatOverrides, chatFactsOf, openChat } from './chat.ts'
import type { NamedUniverse } from './chat-registry.ts'
import type { Core } from './core.ts'
import type { Custody, KeyMonitor } from './custody.ts'
import { openEarn } from './earn.ts'
import { openImages } from './images.ts'
import type { Mails } from './mails.ts'
import { type OAuthOverrides, openOAuth, personTokensTopic } from './oauth.ts'
import { holdingFacts, type OrderOverrides, type Orders, openOrders, openSwapHooks } from './orders.ts'
import { policyOperations } from './policy-operations.ts'
import { openRecharge } from './recharge.ts'
import { perpLimitsOf } from './settings.ts'
import { openSwap } from './swap.ts'
import type { UpstreamUrls } from './upstream-urls.ts'
import type { Venue } from './venue.ts'
import { openVenueFeatures, type VenueFeatureOverrides } from './venue-features.ts'
import { openVenueTrading, type TradingOverrides } from './venue-trading.ts'
import { openWallets } from './wallets.ts'
import { openWebhooks, openWebhooksOfApps, type WebhookOverrides } from './webhooks.ts'

type FeatureDeps = {
  core: Core
  urls: UpstreamUrls
  net: Net
  chains: Chains
  custody: Custody
  venue: Venue | undefined
  probe: ChainHealth
  keyMonitor: KeyMonitor
  /** Posts to the addresses of users. */
  webhookHttp: GuardedFetch
  imageFiles: GuardedFetch
  mails: Mails
  models: ChatModels | undefined
  agent: Answerer
  universe: () => Promise<NamedUniverse>
  /** Calls of operations for a user; they exist once all features do. */
  innerCalls: () => InnerCalls
}
export type FeatureOverrides = VenueFeatureOverrides &
  OrderOverrides &
  TradingOverrides &
  WebhookOverrides &
  OAuthOverrides &
  ChatOverrides & {
    /** Runs in the transaction that creates a user, instead of the grant of the faucet. */
    onSignup?: OnSignup
    /** Operations of a test, on the same parts as those of the product. */
    addOperations?: (parts: Pick<FeatureDeps, 'core' | 'chains' | 'custody'>) => Operation[]
  }

const dayMs = 24 * 3_600_000

/** Triggers compare prices that are as old as the interval of their watch. */
const orderPricesMs = 1_000
const protocols = ['http', 'sse', 'mcp']

/** A new user's wallets are funded where a faucet is configured. */
const grantOnSignup =
  ({ core: { taskEngine }, chains }: FeatureDeps, kind: TaskKind | undefined): OnSignup =>
  async (tx, { userId, wallets: own }) => {
    if (!kind) return
    const admission = faucetGrantAdmission(own, chains.table)
    await taskEngine.enqueue(tx, { userId, kind, input: {}, admission })
  }

function openAuth({ core, net, custody, mails }: FeatureDeps, onSignup: OnSignup, overrides: OAuthOverrides) {
  const webhooksOfApps = openWebhooksOfApps(core)
  const { config, db, taskEngine, clock, random, baseUrl } = core
  const credits = makeCredits({ db, ledger: taskEngine.ledger, clock })
  const oauth = openOAuth({ core, net, custody, mails, webhooksOfApps }, overrides)
  const signups = signupGrants({
    grantSignup: credits.grantSignup,
    limits: createSignInLimits({ db, clock, windowMs: dayMs }),
    perAddressMax: config.SIGNUP_GRANTS_PER_DAY,
  })
  const auth = makeAuth({
    db,
    oauth,
    creditsOf: (tx, userId) => credits.available(userId, tx),
    walletsOf,
    transact: taskEngine.transact,
    announceQueued: taskEngine.announceQueued,
    clock,
    random,
    baseUrl,
    keystore: custody.keystore,
    tokenTtlMs: config.TOKEN_TTL_SECONDS * 1000,
    signInAgeMaxSeconds: config.FRESH_SIGN_IN_SECONDS,
    signups,
    endApps: webhooksOfApps.endApps,
    publishRevoked: async (userId, hashes) =>
      taskEngine.notifier.broadcast([...hashes.map(revokedTopic), accessTopic(userId)]),
    onSignup,
  })
  taskEngine.notifier.onAny((topic) => {
    if (topic === gapTopic) auth.clearTokenCache()
    const userId = userOfAccessTopic(topic)
    if (topic === personTokensTopic || userId !== undefined) auth.endPersonTokens(userId)
    const hash = revokedHash(topic)
    if (hash !== undefined) auth.onRevoked(hash)
  })
  return { auth, credits, signups, oauth }
}

/** The services that judge tokens, as far as they are configured. */
const openTokenReports = ({ urls, net }: FeatureDeps): TokenReports[] => [
  ...(urls.honeypot ? [honeypot({ url: urls.honeypot, net })] : []),
  ...(urls.rugcheck ? [rugCheck({ url: urls.rugcheck, net })] : []),
]

const openFaucetGrant = ({ urls, net }: FeatureDeps, changed: (userId: string, chainId: string) => void) =>
  urls.faucet ? createFaucetGrant({ faucet: faucet({ url: urls.faucet, net }), changed }) : undefined

export function openFeatures(needs: FeatureDeps, overrides: FeatureOverrides = {}) {
  const { core, urls, net, chains, custody, venue, probe } = needs
  const { config, db, transactions, clock } = core
  const { table, readers } = chains
  const earn = openEarn({ core, chains, custody, holdings: () => holdings })
  const priceSource = prices({ url: urls.prices ?? '', net, clock })
  const holdings: Holdings = makeHoldings({
    chains: readers,
    prices: priceSource,
    share: earn?.share ?? null,
    walletsOf: (userId) => walletsOf(db, userId),
    recentTokens: (userId) => recentTokens(db, userId),
    ...holdingFacts(db),
    clock,
  })
  const changed = (userId: string, chainId: string) => holdings.invalidate(userId, chainId)
  const recharge = openRecharge({
    core,
    chains,
    custody,
    probe,
    prices: urls.prices ? priceSource : undefined,
    coinbase: urls.coinbase ? coinbase({ url: urls.coinbase, net }) : undefined,
    changed,
  })
  const security = makeSecurity({
    readers,
    reports: openTokenReports(needs),
    clock,
    isSolanaAddress: isAddress,
  })
  const bridge = openBridge(config, chains)
  const trading = bridge && venue && openVenueTrading({ core, venue, custody }, overrides)
  const orderPrices = prices({ url: urls.prices ?? '', net, clock, freshMs: orderPricesMs })
  const swaps = openSwap({
    core,
    urls,
    net,
    chains,
    custody,
    prices: priceSource,
    verdicts: security.verdicts,
    hooks: openSwapHooks({ core, chains, custody, prices: orderPrices }),
    changed,
  })
  const venueFeatures =
    trading && openVenueFeatures({ core, bridge, trading, custody, swaps, changed }, overrides)
  const faucetGrant = openFaucetGrant(needs, changed)
  const access = openAuth(needs, overrides.onSignup ?? grantOnSignup(needs, faucetGrant), overrides)
  const { auth, credits } = access
  const webhooks = openWebhooks({ core, custody, auth, http: needs.webhookHttp }, overrides)
  const health = healthCheck({
    version: release,
    environment: config.ENVIRONMENT,
    clock,
    ...databaseChecks(core),
    runner: () => readQueueStats(transactions, clock),
    custody: needs.keyMonitor.status,
    upstreams: async () =>
      Object.fromEntries([
        ...table.map(({ id, name }) => [name, healthOf(probe, id)] as const),
        ...(venue ? [['hyperliquid', venue.health.state()] as const] : []),
      ]),
  })
  const images = openImages({ ...needs, credits })
  const orders =
    swaps && openOrders({ core, chains, custody, prices: orderPrices, swaps: swaps.execution }, overrides)
  const facts = factsOf(config, { table, hasModel: needs.models !== undefined })
  const operations: Operation[] = [
    ...discovery({ operations: () => operations, facts, protocols, health }),
    ...chainList({ chainRows: table, status: probe.status }),
    ...auth.operations,
    ...security.operations,
    ...openWallets(needs, { holdings, prices: priceSource, changed }),
    ...(earn?.operations ?? []),
    ...(venueFeatures?.operations ?? []),
    ...(swaps?.operations ?? []),
    ...(orders?.operations ?? []),
    ...taskOperations(core, orders, () => kindNames),
    ...credits.operations,
    ...(recharge?.operations ?? []),
    ...user({ db, walletsOf, credits, policySummary: custody.policy.summary }),
    ...webhooks.operations,
    ...images.operations,
    ...policyOperations(needs, access),
    ...openChat(
      { ...needs, credits, files: images.files, table: chains.table, operations: () => operations },
      overrides,
    ),
    ...(overrides.addOperations?.(needs) ?? []),
  ]
  const kinds = [
    ...(faucetGrant ? [faucetGrant] : []),
    ...(earn ? [snapshotKind(earn.snapshot), earn.audit] : []),
    creditGrant,
    ...(recharge ? [recharge.kind] : []),
    ...(swaps?.kinds ?? []),
    ...(venueFeatures?.kinds ?? []),
    ...(orders?.kinds ?? []),
  ]
  const kindNames = kindNamesOf(operations, kinds)
  return {
    operations,
    kinds,
    security,
    ...access,
    health,
    earn,
    holdings,
    faucetGrant,
    recharge,
    venueFeatures,
    orders,
    webhooks,
    images,
  }
}

const databaseChecks = ({ db, taskEngine: { holds, time } }: Core) => ({
  async store() {
    // A read may still work while no commit does, as on a primary whose standby hangs.
    if (time.isSilent()) throw new Error('no heartbeat was committed')
    await db.query('select 1')
  },
  money: () => ({ holds: holds.list(), isReplicated: time.replication.isReplicated() }),
})

const healthOf = ({ status, lastOkAt }: ChainHealth, id: string) => ({
  status: status(id),
  lastOkAt: lastOkAt(id),
})

const taskOperations = (
  { db, taskEngine, clock }: Core,
  orders: Orders | undefined,
  kinds: () => readonly string[],
): Operation[] =>
  tasks({ db, tasks: taskEngine.tasks, clock, publishOrders: orders?.publish, view: toTaskFullView, kinds })

/** Every kind that a task can have. */
const kindNamesOf = (operations: readonly Operation[], kinds: readonly TaskKind[]): string[] => [
  ...new Set([
    ...operations.flatMap(({ name, entry }) =>
      entry.kind === 'task' || hasTask(entry) ? [entry.taskKind ?? name] : [],
    ),
    ...kinds.map(({ kind }) => kind),
  ]),
]

const factsOf = (config: Config, { table, hasModel }: { table: readonly Chain[]; hasModel: boolean }) => ({
  chat: chatFactsOf({ hasModel }),
  chains: { ids: table.map(({ id }) => id) },
  trading: {
    gasless: true,
    dry_run: true,
    bound_quotes: true,
    order_types: ['swap', 'limit', 'stop_loss', 'take_profit', 'trailing'],
    min_swap_usd: swapLimits.minSwapUsd,
    default_slippage_bps: swapLimits.slippageBps.default,
    security_enforced: true,
  },
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
    trigger_host: config.HYPERLIQUID_SPOT_TRIGGERS,
  },
  wallets: { kinds: ['evm', 'solana'], transfer_out: true },
  notifications: { stream: true, rest: true, webhooks: true, retention_days: config.EVENT_RETENTION_DAYS },
  auth: {
    schemes: config.AUTH_MODE === 'off' ? ['keypair'] : ['keypair', 'oauth2.1'],
    scopes: ['read', 'chat', 'trade', 'earn', 'manage', 'propose'],
    token_ttl_seconds: config.TOKEN_TTL_SECONDS,
  },
})
