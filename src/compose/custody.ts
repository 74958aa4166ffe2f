import type { Config } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { evmBatches } from '#features/chains/batch.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import { agentBook } from '#features/wallets/agent-book.ts'
import { type Keystore, keystore as makeKeystore } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { rememberedWallets } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Net } from '#kernel/net.ts'
import type { UpstreamUrls } from '#start/place.ts'
import type { Queryable } from '#store/query.ts'
import { startNonce } from '#upstreams/evm/nonce.ts'
import { evmScheme } from '#upstreams/evm/sign.ts'
import { hyperliquidScheme } from '#upstreams/hyperliquid/sign.ts'
import { svmScheme } from '#upstreams/solana/sign.ts'
import type { Chains } from './chains.ts'
import { bridgeChainId, custodyChains, custodyVenue, houseLimits, keysOf } from './settings.ts'
import type { Stores } from './store.ts'

type Needs = { config: Config; urls: UpstreamUrls; net: Net; chains: Chains; stores: Stores; ground: Ground }

/** Keys, the policy that guards them, and the signed batches that come of both. */
export function openCustody({ config, urls, net, chains: { table, ports }, stores, ground }: Needs) {
  const served = { venue: urls.hyperliquid !== undefined && ports.has(bridgeChainId) }
  const schemes = { evm: evmScheme, svm: svmScheme }
  const keystore = makeKeystore({ keks: keysOf(config, net, random), schemes, clock, random })
  const on = stores.database.pool
  const walletsOf = rememberedWallets()
  const agents = agentBook()
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(on, userId)).find(({ kind }) => kind === 'evm')!.address
  const policy = makePolicy({
    ...{ on, transact: ground.transact, clock, random, walletsOf },
    house: houseLimits(config, table, served),
  })
  const signer = custodySigner({
    ...{ on: stores.custody.pool, keystore, scheme: evmScheme, clock, agents, genuine: policy.genuine },
    chains: custodyChains(config, table, served),
    venues: served.venue ? [{ ...custodyVenue(config), scheme: hyperliquidScheme }] : [],
  })
  const batches = evmBatches({ ports, policy: policy.policy, signer, lanes: ground.lanes, startNonce })
  return { keystore, policy, signer, batches, agents, evmAddressOf }
}
export type Custody = ReturnType<typeof openCustody>

/** Each call wraps some more keys under the current key-encryption key, until none is left under a former one. */
export function rotation({ rewrap }: Pick<Keystore, 'rewrap'>, on: Queryable, log: Log): () => Promise<void> {
  let after: string | null = null
  return async () => {
    const { rewrapped, broken, next } = await rewrap(on, { after })
    after = next
    if (rewrapped > 0) log.info({ rewrapped }, 'wallet keys were wrapped under the current key')
    if (broken.length > 0) log.error({ wallets: broken }, 'these wallet keys open under no key at hand')
  }
}
