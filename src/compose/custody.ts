import { type Config, ConfigRefused } from '#config.ts'
import type { Ground } from '#durable/ground.ts'
import { evmBatches } from '#features/chains/batch.ts'
import { gasBudget } from '#features/chains/gas-budget.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import { agentBook } from '#features/wallets/agent-book.ts'
import { type ClosedKek, type Keystore, keystore as makeKeystore } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { rememberedWallets } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { toUnits } from '#kernel/money.ts'
import type { Net } from '#kernel/net.ts'
import type { UpstreamUrls } from '#start/place.ts'
import type { Queryable } from '#store/query.ts'
import { startNonce } from '#upstreams/evm/nonce.ts'
import { evmScheme } from '#upstreams/evm/sign.ts'
import { hyperliquidScheme } from '#upstreams/hyperliquid/sign.ts'
import { svmScheme } from '#upstreams/solana/sign.ts'
import type { Chains } from './chains.ts'
import { bridgeOf, custodyChains, custodyVenue, houseLimits, keysOf } from './settings.ts'
import type { Stores } from './store.ts'

type Needs = { config: Config; urls: UpstreamUrls; net: Net; chains: Chains; stores: Stores; ground: Ground }

/** The sealed keys of wallets, with the key-encryption keys of the settings. */
export function openKeystore(config: Config, net: Net) {
  const keys = keysOf(config, net, random)
  const schemes = { evm: evmScheme, svm: svmScheme }
  return { keys, keystore: makeKeystore({ keks: keys, schemes, clock, random }) }
}

const nativeDecimals = 18

/** Keys, the policy that guards them, and the signed batches that come of both. */
export function openCustody({ config, urls, net, chains: { table, ports }, stores, ground }: Needs) {
  const served = { venue: urls.hyperliquid !== undefined && ports.has(bridgeOf(config).chainId) }
  const { keystore } = openKeystore(config, net)
  const on = stores.database.pool
  const walletsOf = rememberedWallets()
  const agents = agentBook()
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(on, userId)).find(({ kind }) => kind === 'evm')!.address
  const policy = makePolicy({
    on,
    transact: ground.transact,
    clock,
    random,
    walletsOf,
    house: houseLimits(config, table, served),
  })
  const signer = custodySigner({
    on: stores.custody.pool,
    keystore,
    scheme: evmScheme,
    clock,
    agents,
    genuine: policy.genuine,
    chains: custodyChains(config, table, served),
    venues: served.venue
      ? [{ ...custodyVenue(config), scheme: hyperliquidScheme(config.HYPERLIQUID_NETWORK) }]
      : [],
  })
  const budgetWei = toUnits(config.SPONSOR_USER_DAY, nativeDecimals)
  const batches = evmBatches({
    ports,
    policy: policy.policy,
    signer,
    lanes: ground.lanes,
    startNonce,
    gasBudget: gasBudget({ on, budgetWei, clock }),
  })
  return { keystore, policy, signer, batches, agents, evmAddressOf }
}
export type Custody = ReturnType<typeof openCustody>

/** Each call wraps every key under the current key-encryption key that is still under a former one. */
export function rotation({ rewrap }: Pick<Keystore, 'rewrap'>, on: Queryable, log: Log): () => Promise<void> {
  let running = false
  return async () => {
    // A large rotation takes longer than the pause between two calls.
    if (running) return
    running = true
    try {
      for (let after: string | null = null, more = true; more; more = after !== null) {
        const { rewrapped, broken, next } = await rewrap(on, { after })
        after = next
        if (rewrapped > 0) log.info({ rewrapped }, 'wallet keys were wrapped under the current key')
        if (broken.length > 0) log.error({ wallets: broken }, 'these wallet keys open under no key at hand')
      }
    } finally {
      running = false
    }
  }
}

const sentenceOf = ({ kekId, reason }: ClosedKek): string =>
  reason === 'absent'
    ? `KEY_ENCRYPTION_KEYS: wallets are sealed under the key ${kekId}, which is not in the list; add it behind the others`
    : `KEY_ENCRYPTION_KEYS: the key ${kekId} is not the one that sealed the wallets under this id; set the right one`

type WatchDeps = { keystore: Pick<Keystore, 'closedKeks'>; on: Queryable; log: Log }

/** Whether every key-encryption key in use opens what it wrapped: asked at the start, and again each minute. */
export function keyWatch({ keystore, on, log }: WatchDeps) {
  let closed: readonly ClosedKek[] = []
  let asked = false
  const look = async () => {
    closed = await keystore.closedKeks(on)
    asked = true
    if (closed.length > 0) log.error({ keys: closed }, 'key-encryption keys in use open nothing')
  }
  return {
    look,
    /** Throws where a key is wrong or missing: new wallets would be sealed beside a mistake. */
    async demand(): Promise<void> {
      // A key service that is away is no wrong key; signing fails until it is back, and health says so.
      await look().catch((error: unknown) =>
        log.error({ error }, 'the key-encryption keys could not be checked'),
      )
      if (closed.length > 0) throw new ConfigRefused(closed.map(sentenceOf))
    },
    status: (): 'ok' | 'degraded' => (asked && closed.length === 0 ? 'ok' : 'degraded'),
    gauges: () => [
      {
        name: 'key_encryption_keys_closed',
        help: 'Key-encryption keys in use that open none of the keys that they wrapped',
        value: closed.length,
      },
    ],
  }
}
export type KeyWatch = ReturnType<typeof keyWatch>
