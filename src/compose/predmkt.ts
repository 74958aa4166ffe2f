import { reserveSpend } from '#durable/accept/reserve-spend.ts'
import * as swapLeg from '#features/perp/swap-leg.ts'
import * as swapAfter from '#features/perp/withdraw-swap.ts'
import { createPredmkt } from '#features/predmkt/predmkt.ts'
import { createVenueKeys } from '#features/predmkt/store/venue-keys.ts'
import { chainByRef, tokenByRef } from '#kernel/contract/token-ref.ts'
import { createSealer } from '#kernel/wire/sealed-secret.ts'
import { createPolymarket } from '#upstreams/polymarket/polymarket.ts'
import { takerFeeUnits } from '#upstreams/polymarket/taker-fee.ts'
import type { SharedParts } from './section-parts.ts'
import { polymarketRelayerKey } from './settings.ts'
import type { Swaps } from './swap.ts'

type PredmktParts = Pick<SharedParts, 'core' | 'urls' | 'net' | 'chains' | 'custody' | 'changed'> & {
  swaps: Pick<Swaps, 'legs'>
}

export const chainId = '137'
/** Opens the section of prediction markets; undefined where the venue or its chain is not configured. */
export function openPredmkt({ core, urls, net, chains, custody, changed, swaps }: PredmktParts) {
  const chain = chains.ports.get(chainId)?.chain
  if (!chain || !urls.polymarket) return undefined
  const { config, db, clock, random, log, taskEngine } = core
  const { keyEncryptionKeys } = custody
  const venue = createPolymarket({
    urls: urls.polymarket,
    net,
    clock,
    random,
    log,
    relayerKey: polymarketRelayerKey(config),
    builderCode: config.POLYMARKET_BUILDER_CODE,
  })
  const keys = createVenueKeys({
    db,
    venue: venue.name,
    sealer: createSealer({ keyEncryptionKeys, random }),
    keyEncryptionKeys,
    clock,
    random,
    log,
  })
  const predmkt = createPredmkt({
    db,
    clock,
    random,
    log,
    venue,
    chain,
    batches: custody.batches,
    policy: custody.policy.policy,
    signer: custody.signer,
    nonces: taskEngine.nonces,
    ledger: taskEngine.ledger,
    keys,
    swaps: swaps.legs,
    swapLeg,
    swapAfter,
    reserve: reserveSpend,
    evmAddressOf: custody.evmAddressOf,
    changed,
    transact: taskEngine.transact,
    events: taskEngine.events,
    enqueue: taskEngine.enqueue,
    takerFeeUnits,
    tokenOnChain(ref, token, field = 'source_chain_id') {
      const named = chainByRef(chains.table, ref ?? chainId, field)
      if (named.id !== chainId) return undefined
      const found = tokenByRef(named, token, 'source_token_address')
      return 'token' in found ? found.token.address : token
    },
    limits: {
      minFundUsd: config.POLYMARKET_MIN_FUND_USD,
      relaysPerDay: config.POLYMARKET_RELAYS_PER_DAY,
    },
  })
  return {
    ...predmkt,
    part: 'trading' as const,
    venue,
    keyJobs: { predictionKeys: keys.rewrap },
  }
}
