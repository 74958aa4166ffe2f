import { userTopic } from '#durable/notifier.ts'
import { createSignedActions } from '#engines/venue/orders/signed-action.ts'
import { createKeyRenewal } from '#features/perp/key-renewal.ts'
import { perp as makePerp } from '#features/perp/perp.ts'
import { createSetupStatus } from '#features/perp/setup-status.ts'
import { createPriceLoop } from '#features/spot-venue/price-loop.ts'
import { spotVenue } from '#features/spot-venue/spot-venue.ts'
import { addAgent, approveAgent, retireAgent, rolesOf } from '#features/wallets/agents.ts'
import { transferData } from '#upstreams/evm/erc20.ts'
import * as rejections from '#upstreams/hyperliquid/rejections.ts'
import * as grid from '#upstreams/hyperliquid/rounding.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { bridgeOf, perpLimitsOf, venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

type VenueFeatureDeps = {
  core: Core
  venue: Venue | undefined
  chains: Chains
  custody: Custody
  changed: (userId: string, chainId: string) => void
}
export type VenueFeatureOverrides = {
  /** How long a user-signed action is looked up after a rejection before it counts as not executed. */
  actionGraceMs?: number
  /** Interval in which the prices of markets with triggers are checked. */
  priceCheckMs?: number
}

const venueName = 'hyperliquid'

const accountsMax = 20_000

/** A commit for a user, on any instance, invalidates cached views of the account. */
function invalidateViewsOnCommit({ core: { taskEngine }, custody }: VenueFeatureDeps, { views }: Venue) {
  const accounts = new Map<string, string>()
  taskEngine.notifier.onAny((topic) => {
    const account = accounts.get(topic)
    if (account !== undefined) views.invalidate(account)
  })
  return async (userId: string): Promise<string> => {
    const account = await custody.evmAddressOf(userId)
    if (accounts.size >= accountsMax) accounts.clear()
    accounts.set(userTopic(userId), account)
    return account
  }
}

/** Undefined where the venue or the chain of its bridge is not configured; the sections do not exist then. */
export function openVenueFeatures(needs: VenueFeatureDeps, overrides: VenueFeatureOverrides = {}) {
  const { core, venue: opened, chains, custody, changed } = needs
  const { config, taskEngine, db, clock, log } = core
  const bridge = bridgeOf(config)
  const chain = chains.ports.get(bridge.chainId)?.chain
  if (!chain || !opened) return undefined
  const venue = opened.client
  const { policy } = custody.policy
  const { signer, keystore, batches } = custody
  const evmAddressOf = invalidateViewsOnCommit(needs, opened)
  const signedActions = createSignedActions({
    venue: venue.withUrgency('exit'),
    chainId: venueChainId,
    policy,
    signer,
    nonces: taskEngine.nonces,
    ...(overrides.actionGraceMs !== undefined && { graceMs: overrides.actionGraceMs }),
  })
  const limits = perpLimitsOf(config)
  const markChanging = (userId: string) => {
    const whose = { userId, venue: venueName }
    custody.agents.invalidate(whose)
    return whose
  }
  const agents = {
    of: async (userId: string) => rolesOf(await custody.agents.read(db, { userId, venue: venueName })),
    prepare: (userId: string) => keystore.prepareAgent(userId, venueName),
    add: addAgent,
    approved: (tx, userId, fact) => approveAgent(tx, markChanging(userId), fact),
    retired: (userId, address) => retireAgent(db, markChanging(userId), { address, now: clock.now() }),
  } satisfies Parameters<typeof makePerp>[0]['agents']
  const shared = {
    db,
    venue,
    views: opened.views,
    readStreamedOrder: opened.streams.readOrder,
    chainId: venueChainId,
    signedActions,
    pricing: grid,
    rejections,
    policy,
    evmAddressOf,
    clock,
  }
  const operations = makePerp({
    ...shared,
    agents,
    batches,
    chain,
    ledger: taskEngine.ledger,
    changed,
    limits,
    transferCall: (token, to, amountUnits) => ({ to: token, value: 0n, data: transferData(to, amountUnits) }),
    route: {
      chainId: bridge.chainId,
      symbol: 'USDC',
      token: chain.row.usdc,
      bridge: bridge.address,
    },
  })
  const work = venue.withUrgency('work')
  const renewal = createKeyRenewal({
    ...shared,
    venue: work,
    agents,
    log,
    transact: taskEngine.transact,
    enqueue: taskEngine.enqueue,
    status: createSetupStatus({ db, views: opened.views, agents, evmAddressOf, clock, limits }),
    onNotExecuted: policy.release,
  })
  const spot = spotVenue({
    ...shared,
    triggerHost: config.HYPERLIQUID_SPOT_TRIGGERS,
    limits,
    agentOf: async (userId) => (await agents.of(userId)).current,
    onAgentRevoked: (task, agent) => agents.retired(task.userId, agent),
    renewKey: renewal.renew,
  })
  const priceLoop = createPriceLoop({
    db,
    venue: venue.withUrgency('exit'),
    watcher: taskEngine.priceTriggers,
    evmAddressOf,
    log,
    streamedMids: opened.streams.mids,
    ...(overrides.priceCheckMs !== undefined && { everyMs: overrides.priceCheckMs }),
  })
  return {
    operations: [...operations, ...spot.operations],
    kinds: [...spot.kinds, ...renewal.kinds],
    priceLoop,
    signedActions,
    renewal,
  }
}
