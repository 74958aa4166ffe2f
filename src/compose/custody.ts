import { type Config, ConfigRefused } from '#config.ts'
import { evmBatches } from '#engines/evm-batch/batch.ts'
import { gasBudget } from '#engines/evm-batch/gas-budget.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { lamportBudget } from '#engines/svm-transaction/lamport-budget.ts'
import { svmTransactions } from '#engines/svm-transaction/transaction.ts'
import { policy as makePolicy } from '#features/policy/policy.ts'
import { agentCache } from '#features/wallets/agent-cache.ts'
import { type Keystore, keystore as makeKeystore, type UnusableKek } from '#features/wallets/keystore.ts'
import { custodySigner } from '#features/wallets/signer.ts'
import { cachedWallets } from '#features/wallets/store.ts'
import { createTradingKeys } from '#features/wallets/trading-keys.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { gauge, type Metric } from '#kernel/metrics.ts'
import { lamportDecimals, nativeDecimals, toUnits } from '#kernel/money/money.ts'
import type { Net } from '#kernel/wire/net.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import { comparedHashes } from '#store/found-effect.ts'
import type { Queryable } from '#store/query.ts'
import { startNonce } from '#upstreams/evm/nonce-repair-plan.ts'
import { evmCrypto } from '#upstreams/evm/sign.ts'
import { hyperliquidCrypto } from '#upstreams/hyperliquid/crypto.ts'
import { svmDecoder } from '#upstreams/solana/instructions.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import {
  bridgeOf,
  custodyChains,
  custodySvmChains,
  custodyVenue,
  keysOf,
  platformLimits,
} from './settings.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type KeystoreDeps = { config: Config; net: Net; clock: Clock; random: Random }
type CustodyDeps = { core: Core; urls: UpstreamUrls; net: Net; chains: Chains; mailQueue: MailQueue }
export type CustodyOverrides = {
  keyEncryptionKeys?: KeyEncryptionKeys
}

/** The sealed keys of wallets, with the configured key-encryption keys. */
export function openKeystore(
  { config, net, clock, random }: KeystoreDeps,
  { keyEncryptionKeys = keysOf(config, net, random) }: CustodyOverrides = {},
) {
  const schemes = { evm: evmCrypto, svm: svmCrypto }
  return { keyEncryptionKeys, keystore: makeKeystore({ keyEncryptionKeys, crypto: schemes, clock, random }) }
}

/** Keystore, policy, signer, and the batches that they sign. */
export function openCustody(
  { core, urls, net, mailQueue, chains: { table, nameOf, ports, svmPorts, nonceRepair } }: CustodyDeps,
  overrides: CustodyOverrides = {},
) {
  const { config, clock, random, stores, db, taskEngine } = core
  const served = {
    venue: urls.hyperliquid !== undefined && ports.has(bridgeOf(config).chainId),
    swaps: urls.relay !== undefined || urls.lifi !== undefined,
  }
  const { keystore, keyEncryptionKeys } = openKeystore({ config, net, clock, random }, overrides)
  const walletsOf = cachedWallets()
  const agents = agentCache()
  const evmAddressOf = async (userId: string) =>
    (await walletsOf(db, userId)).find(({ kind }) => kind === 'evm')!.address
  const svmAddressOf = async (userId: string) =>
    (await walletsOf(db, userId)).find(({ kind }) => kind === 'svm')!.address
  const policy = makePolicy({
    db,
    clock,
    random,
    coolingMs: config.COOLING_SECONDS * 1_000,
    events: taskEngine.events,
    acts: taskEngine.approvals,
    walletsOf,
    platformLimits: platformLimits(config, table, served),
    mailQueue,
    chainName: nameOf,
  })
  const venueCrypto = hyperliquidCrypto(config.HYPERLIQUID_NETWORK)
  const signer = custodySigner({
    db: stores.custody.pool,
    keystore,
    crypto: evmCrypto,
    clock,
    agents,
    assertFree: taskEngine.holds.assertFree,
    isAuthentic: policy.isAuthentic,
    chains: custodyChains(config, table, served),
    svm: {
      crypto: svmCrypto,
      decoder: svmDecoder,
      chains: custodySvmChains(config, table, { svmPorts, swaps: served.swaps }),
    },
    venues: served.venue ? [{ ...custodyVenue(config), crypto: venueCrypto }] : [],
  })
  const budgetWei = toUnits(config.SPONSOR_USER_DAY, nativeDecimals)
  const batches = evmBatches({
    ports,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    startNonce,
    reconcileNonces: nonceRepair.reconcile,
    assertFree: taskEngine.holds.assertFree,
    clock,
    gasBudget: gasBudget({ db, budgetWei, clock }),
    comparedHash: comparedHashes(db),
  })
  const svm = svmTransactions({
    ports: svmPorts,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    assertFree: taskEngine.holds.assertFree,
    clock,
    random,
    budget: lamportBudget({
      budgetLamports: toUnits(config.SOLANA_SPONSOR_USER_DAY, lamportDecimals),
      clock,
    }),
  })
  const tradingKeys = createTradingKeys({
    db,
    clock,
    keystore,
    cache: agents,
    venue: custodyVenue(config).venue,
  })
  const loadSigning = async () => (served.venue ? venueCrypto.load() : undefined)
  return {
    keystore,
    keyEncryptionKeys,
    policy,
    signer,
    batches,
    svm,
    tradingKeys,
    evmAddressOf,
    svmAddressOf,
    loadSigning,
  }
}
export type Custody = ReturnType<typeof openCustody>

/** Each call wraps every key that is still under a former key-encryption key under the current one. */
export function createKeyRotation(
  { rewrap }: Pick<Keystore, 'rewrap'>,
  db: Queryable,
  log: Log,
): () => Promise<void> {
  return async () => {
    for (let after: string | null = null, more = true; more; more = after !== null) {
      const { rewrapped, broken, next } = await rewrap(db, { after })
      after = next
      if (rewrapped > 0) log.info({ rewrapped }, 'wallet keys wrapped under the current key-encryption key')
      if (broken.length > 0)
        log.error({ wallets: broken }, 'no configured key-encryption key unwraps these wallet keys')
    }
  }
}

const problemText = ({ kekId, reason }: UnusableKek): string =>
  reason === 'absent'
    ? `KEY_ENCRYPTION_KEYS: wallets are sealed under the key ${kekId}, which is not in the list; append it`
    : `KEY_ENCRYPTION_KEYS: the key ${kekId} does not unwrap the wallets that were sealed under this id; set the original key`

type KeyMonitorDeps = { keystore: Pick<Keystore, 'unusableKeyEncryptionKeys'>; db: Queryable; log: Log }

/** Whether every key-encryption key in use unwraps its keys: checked at start and every minute. */
export function createKeyMonitor({ keystore, db, log }: KeyMonitorDeps) {
  let closed: readonly UnusableKek[] = []
  let isChecked = false
  const check = async () => {
    closed = await keystore.unusableKeyEncryptionKeys(db)
    isChecked = true
    if (closed.length > 0) log.error({ keys: closed }, 'key-encryption keys in use do not unwrap their keys')
  }
  return {
    check,
    /** Throws where a key is wrong or missing, before new wallets are sealed under a misconfiguration. */
    async assertUsable(): Promise<void> {
      // An unavailable key service is not a wrong key: signing fails until it is back, and health reports it.
      await check().catch((error: unknown) => log.error({ error }, 'could not check the key-encryption keys'))
      if (closed.length > 0) throw new ConfigRefused(closed.map(problemText))
    },
    status: (): 'ok' | 'degraded' => (isChecked && closed.length === 0 ? 'ok' : 'degraded'),
    metrics: (): Metric[] => [
      gauge(
        'portico_key_encryption_keys_unusable',
        'Key-encryption keys in use that are missing or do not unwrap their keys',
        closed.length,
      ),
      gauge(
        'portico_key_encryption_keys_checked',
        '1 once the key-encryption keys could be checked',
        isChecked ? 1 : 0,
      ),
    ],
  }
}
export type KeyMonitor = ReturnType<typeof createKeyMonitor>
