import type { Config } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { perp as makePerp } from '#features/perp/perp.ts'
import { venueActs } from '#features/venue/act.ts'
import { addAgent, agentsOf, approveAgent, retireAgent } from '#features/wallets/agents.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { transferData } from '#upstreams/evm/erc20.ts'
import * as grid from '#upstreams/hyperliquid/grid.ts'
import * as refusals from '#upstreams/hyperliquid/refusals.ts'
import type { Chains } from './chains.ts'
import type { Custody } from './custody.ts'
import { bridgeChainId, perpLimitsOf, venueChainId } from './settings.ts'
import type { Stores } from './store.ts'
import type { Venue } from './venue.ts'

type Needs = {
  config: Config
  venue: Venue | undefined
  chains: Chains
  stores: Stores
  ground: Ground
  custody: Custody
  changed: (userId: string, chainId: string) => void
}

const venueName = 'hyperliquid'

/** Served where the venue is, and the chain of its bridge; without them the section does not exist. */
export function openPerp({ config, venue: opened, chains, stores, ground, custody, changed }: Needs) {
  const chain = chains.ports.get(bridgeChainId)?.chain
  if (!chain || !opened) return undefined
  const on = stores.database.pool
  const venue = opened.client
  const { policy } = custody.policy
  const { signer, keystore, batches } = custody
  const acts = venueActs({
    ...{ venue: venue.at('exit'), chainId: venueChainId, policy, signer, lanes: ground.lanes },
  })
  const operations = makePerp({
    ...{ on, venue, chainId: venueChainId, acts, pricing: grid, refusals, policy, batches, chain, clock },
    ...{ ledger: ground.ledger, changed, limits: perpLimitsOf(config) },
    agents: {
      of: (userId) => agentsOf(on, { userId, venue: venueName }),
      prepare: (userId) => keystore.prepareAgent(userId, venueName),
      add: addAgent,
      approved: (tx, userId, fact) => approveAgent(tx, { userId, venue: venueName }, fact),
      retired: (userId, address) =>
        retireAgent(on, { userId, venue: venueName }, { address, now: clock.now() }),
    },
    evmAddressOf: async (userId) => (await walletsOf(on, userId)).find(({ kind }) => kind === 'evm')!.address,
    transferCall: (token, to, amountUnits) => ({ to: token, value: 0n, data: transferData(to, amountUnits) }),
    way: {
      ...{ chainId: bridgeChainId, symbol: 'USDC', token: chain.row.usdc },
      bridge: config.HYPERLIQUID_BRIDGE_ADDRESS,
    },
  })
  return { operations }
}
