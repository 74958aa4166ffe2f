import { type Config, ConfigRefused } from '#config.ts'
import type { Engine } from '#durable/engine.ts'
import { evmBatches } from '#engines/evm-batch/batch.ts'
import { gasBudget } from '#engines/evm-batch/gas-budget.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import { agentCache } from '#features/wallets/agent-cache.ts'
import { type Keystore, keystore as makeKeystore, type UnusableKek } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { cachedWallets } from '#features/wallets/store.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import { systemRandom as random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { toUnits } from '#kernel/money.ts'
import type { Net } from '#kernel/net.ts'
import type { Queryable } from '#store/query.ts'
import { startNonce } from '#upstreams/evm/nonce-repair-plan.ts'
import { evmCrypto } from '#upstreams/evm/sign.ts'
import { hyperliquidCrypto } from '#upstreams/hyperliquid/sign.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import type { Chains } from './chains.ts'
import { bridgeOf, custodyChains, custodyVenue, keysOf, platformLimits } from './settings.ts'
import type { Stores } from './store.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type CustodyDeps = {
  config: Config
  urls: UpstreamUrls
  net: Net
  chains: Chains
  stores: Stores
  taskEngine: Engine
}

/** The sealed keys of wallets, with the key-encryption keys of the settings. */
export function openKeystore(config: Config, net: Net) {
  const keys = keysOf(config, net, random)
  const schemes = { evm: evmCrypto, svm: svmCrypto }
  return { keys, keystore: makeKeystore({ keks: keys, crypto: schemes, clock, random }) }
}

const nativeDecimals = 18

/** Keys, the policy that guards them, and the signed batches that come of both. */
export function openCustody({
  config,
  urls,
  net,
  chains: { table, ports },
  stores,
  taskEngine,
}: CustodyDeps) {
  const served = { venue: urls.hyperliquid !== undefined && ports.has(bridgeOf(config).chainId) }
  const { keystore } = openKeystore(config, net)
  const db = stores.database.pool
  const walletsOf = cachedWallets()
  const agents = agentCache()
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(db, userId)).find(({ kind }) => kind === 'evm')!.address
  const policy = makePolicy({
    db,
    transact: taskEngine.transact,
    clock,
    random,
    walletsOf,
    platformLimits: platformLimits(config, table, served),
  })
  const signer = custodySigner({
    db: stores.custody.pool,
    keystore,
    crypto: evmCrypto,
    clock,
    agents,
    isAuthentic: policy.isAuthentic,
    chains: custodyChains(config, table, served),
    venues: served.venue
      ? [{ ...custodyVenue(config), crypto: hyperliquidCrypto(config.HYPERLIQUID_NETWORK) }]
      : [],
  })
  const budgetWei = toUnits(config.SPONSOR_USER_DAY, nativeDecimals)
  const batches = evmBatches({
    ports,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    startNonce,
    gasBudget: gasBudget({ db, budgetWei, clock }),
  })
  return { keystore, policy, signer, batches, agents, evmAddressOf }
}
export type Custody = ReturnType<typeof openCustody>

/** Each call wraps every key under the current key-encryption key that is still under a former one. */
export function createKeyRotation(
  { rewrap }: Pick<Keystore, 'rewrap'>,
  db: Queryable,
  log: Log,
): () => Promise<void> {
  let running = false
  return async () => {
    // A large rotation takes longer than the pause between two calls.
    if (running) return
    running = true
    try {
      for (let after: string | null = null, more = true; more; more = after !== null) {
        const { rewrapped, broken, next } = await rewrap(db, { after })
        after = next
        if (rewrapped > 0) log.info({ rewrapped }, 'wallet keys were wrapped under the current key')
        if (broken.length > 0) log.error({ wallets: broken }, 'these wallet keys open under no key at hand')
      }
    } finally {
      running = false
    }
  }
}

const problemText = ({ kekId, reason }: UnusableKek): string =>
  reason === 'absent'
    ? `KEY_ENCRYPTION_KEYS: wallets are sealed under the key ${kekId}, which is not in the list; add it behind the others`
    : `KEY_ENCRYPTION_KEYS: the key ${kekId} is not the one that sealed the wallets under this id; set the right one`

type KeyMonitorDeps = { keystore: Pick<Keystore, 'unusableKeks'>; db: Queryable; log: Log }

/** Whether every key-encryption key in use opens what it wrapped: asked at the start, and again each minute. */
export function createKeyMonitor({ keystore, db, log }: KeyMonitorDeps) {
  let closed: readonly UnusableKek[] = []
  let isChecked = false
  const check = async () => {
    closed = await keystore.unusableKeks(db)
    isChecked = true
    if (closed.length > 0) log.error({ keys: closed }, 'key-encryption keys in use open nothing')
  }
  return {
    check,
    /** Throws where a key is wrong or missing: new wallets would be sealed beside a mistake. */
    async assertUsable(): Promise<void> {
      // A key service that is away is no wrong key; signing fails until it is back, and health says so.
      await check().catch((error: unknown) =>
        log.error({ error }, 'the key-encryption keys could not be checked'),
      )
      if (closed.length > 0) throw new ConfigRefused(closed.map(problemText))
    },
    status: (): 'ok' | 'degraded' => (isChecked && closed.length === 0 ? 'ok' : 'degraded'),
    gauges: () => [
      {
        name: 'key_encryption_keys_closed',
        help: 'Key-encryption keys in use that open none of the keys that they wrapped',
        value: closed.length,
      },
    ],
  }
}
export type KeyMonitor = ReturnType<typeof createKeyMonitor>
