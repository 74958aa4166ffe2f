import type { Config } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { userTopic } from '#durable/wake.ts'
import { keyRenewal } from '#features/perp/key-renewal.ts'
import { perp as makePerp } from '#features/perp/perp.ts'
import { setupStatus } from '#features/perp/setup-status.ts'
import { spotVenue } from '#features/spot-venue/spot-venue.ts'
import { spotWatch } from '#features/spot-venue/watch.ts'
import { venueActs } from '#features/venue/act.ts'
import { addAgent, approveAgent, retireAgent, rolesOf } from '#features/wallets/agents.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { transferData } from '#upstreams/evm/erc20.ts'
import * as grid from '#upstreams/hyperliquid/grid.ts'
import * as refusals from '#upstreams/hyperliquid/refusals.ts'
import type { Chains } from './chains.ts'
import type { Custody } from './custody.ts'
import { bridgeOf, perpLimitsOf, venueChainId } from './settings.ts'
import type { Stores } from './store.ts'
import type { Venue } from './venue.ts'

type Needs = {
  config: Config
  venue: Venue | undefined
  chains: Chains
  stores: Stores
  ground: Ground
  custody: Custody
  log: Log
  changed: (userId: string, chainId: string) => void
}

const venueName = 'hyperliquid'

const accountsMax = 20_000

/** What is committed for a user, here or on another instance, makes older views of the account out of date. */
function touchingViews({ ground, custody }: Needs, { views }: Venue) {
  const accounts = new Map<string, string>()
  ground.wake.each((topic) => {
    const account = accounts.get(topic)
    if (account !== undefined) views.touched(account)
  })
  return async (userId: string): Promise<string> => {
    const account = await custody.evmAddressOf(userId)
    if (accounts.size >= accountsMax) accounts.clear()
    accounts.set(userTopic(userId), account)
    return account
  }
}

/** Served where the venue is, and the chain of its bridge; without them the sections do not exist. */
export function openVenueSections(needs: Needs) {
  const { config, venue: opened, chains, stores, ground, custody, log, changed } = needs
  const bridge = bridgeOf(config)
  const chain = chains.ports.get(bridge.chainId)?.chain
  if (!chain || !opened) return undefined
  const on = stores.database.pool
  const venue = opened.client
  const { policy } = custody.policy
  const { signer, keystore, batches } = custody
  const evmAddressOf = touchingViews(needs, opened)
  const acts = venueActs({
    venue: venue.at('exit'),
    chainId: venueChainId,
    policy,
    signer,
    lanes: ground.lanes,
  })
  const limits = perpLimitsOf(config)
  const changing = (userId: string) => {
    const whose = { userId, venue: venueName }
    custody.agents.changing(whose)
    return whose
  }
  const agents = {
    of: async (userId: string) => rolesOf(await custody.agents.read(on, { userId, venue: venueName })),
    prepare: (userId: string) => keystore.prepareAgent(userId, venueName),
    add: addAgent,
    approved: (tx, userId, fact) => approveAgent(tx, changing(userId), fact),
    retired: (userId, address) => retireAgent(on, changing(userId), { address, now: clock.now() }),
  } satisfies Parameters<typeof makePerp>[0]['agents']
  const shared = {
    on,
    venue,
    views: opened.views,
    orderHeard: opened.streams.orderOf,
    chainId: venueChainId,
    acts,
    pricing: grid,
    refusals,
    policy,
    evmAddressOf,
    clock,
  }
  const operations = makePerp({
    ...shared,
    agents,
    batches,
    chain,
    ledger: ground.ledger,
    changed,
    limits,
    transferCall: (token, to, amountUnits) => ({ to: token, value: 0n, data: transferData(to, amountUnits) }),
    way: {
      chainId: bridge.chainId,
      symbol: 'USDC',
      token: chain.row.usdc,
      bridge: bridge.address,
    },
  })
  const work = venue.at('work')
  const renewal = keyRenewal({
    ...shared,
    venue: work,
    agents,
    log,
    transact: ground.transact,
    enqueue: ground.enqueue,
    status: setupStatus({ on, views: opened.views, agents, evmAddressOf, clock, limits }),
    released: policy.release,
  })
  const spot = spotVenue({
    ...shared,
    keeper: config.HYPERLIQUID_SPOT_TRIGGERS,
    limits,
    agentOf: async (userId) => (await agents.of(userId)).current,
    agentLost: (task, agent) => agents.retired(task.userId, agent),
    renewKey: renewal.renew,
  })
  const watch = spotWatch({
    on,
    venue: venue.at('exit'),
    watcher: ground.watcher,
    evmAddressOf,
    log,
    told: opened.streams.mids,
  })
  return { operations: [...operations, ...spot.operations], kinds: [...spot.kinds, ...renewal.kinds], watch }
}
