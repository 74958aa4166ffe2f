import type { Config } from '#config.ts'
import { createAgentCache } from '#engines/custody/agent-key-cache.ts'
import { createKeyMonitor } from '#engines/custody/key-monitor.ts'
import { createKeyRotation } from '#engines/custody/key-rotation.ts'
import { createKeystore } from '#engines/custody/keystore.ts'
import { createCustodySigner } from '#engines/custody/signer.ts'
import { createTradingKeys } from '#engines/custody/trading-keys.ts'
import { createAddressReader, createCachedWallets } from '#engines/custody/wallet-store.ts'
import { createEvmBatches } from '#engines/evm-batch/batch.ts'
import { gasDeletions, gasTaskTables } from '#engines/evm-batch/gas-charge-retention.ts'
import { createGasBudget } from '#engines/evm-batch/user-gas-budget.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { createLamportBudget } from '#engines/svm-transaction/lamport-budget.ts'
import { createSvmTransactions } from '#engines/svm-transaction/transaction.ts'
import { createPolicy } from '#features/policy/policy.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import { lamportDecimals, toUnits } from '#kernel/money/money.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { comparedHashes } from '#store/record-found-effect.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { startNonce } from '#upstreams/evm/nonce-repair-plan.ts'
import { hyperliquidCrypto } from '#upstreams/hyperliquid/lazy-signing.ts'
import { polymarketCrypto } from '#upstreams/polymarket/sign.ts'
import { svmDecoder } from '#upstreams/solana/instruction-decoder.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import {
  bridgeOf,
  custodyChains,
  custodyPrediction,
  custodySvmChains,
  custodyVenue,
  keysOf,
  platformLimits,
  userGasPerDay,
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
  return {
    keyEncryptionKeys,
    keystore: createKeystore({ keyEncryptionKeys, crypto: schemes, clock, random }),
  }
}

/** Opens the keystore, the policy, the signer, and the batches that they sign. */
export function openCustody(
  { core, urls, net, mailQueue, chains: { table, nameOf, ports, svmPorts, nonceRepair } }: CustodyDeps,
  overrides: CustodyOverrides = {},
) {
  const { config, clock, random, stores, db, taskEngine, log } = core
  const served = {
    venue: urls.hyperliquid !== undefined && ports.has(bridgeOf(config).chainId),
    swaps: urls.relay !== undefined || urls.lifi !== undefined,
    predictions: urls.polymarket !== undefined && ports.has('137'),
  }
  const { keystore, keyEncryptionKeys } = openKeystore({ config, net, clock, random }, overrides)
  const walletsOf = createCachedWallets()
  const agents = createAgentCache()
  const policy = createPolicy({
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
  const signer = createCustodySigner({
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
    predictions: served.predictions ? [{ ...custodyPrediction(config), crypto: polymarketCrypto }] : [],
    venues: served.venue ? [{ ...custodyVenue(config), crypto: venueCrypto }] : [],
  })
  const batches = createEvmBatches({
    ports,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    startNonce,
    reconcileNonces: nonceRepair.reconcile,
    assertFree: taskEngine.holds.assertFree,
    clock,
    gasBudget: createGasBudget({ db, budgetWeiOf: userGasPerDay(config), clock }),
    comparedHash: comparedHashes(db),
  })
  const svm = createSvmTransactions({
    ports: svmPorts,
    policy: policy.policy,
    signer,
    nonces: taskEngine.nonces,
    assertFree: taskEngine.holds.assertFree,
    clock,
    random,
    budget: createLamportBudget({
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
  const keyMonitor = createKeyMonitor({ keystore, db, log })
  const loadSigning = async () => (served.venue ? venueCrypto.load() : undefined)
  return {
    keystore,
    keyEncryptionKeys,
    keyMonitor,
    metrics: { keys: keyMonitor.metrics },
    keyJobs: {
      rewrap: createKeyRotation({ keystore, db, log }),
      keys: keyMonitor.check,
    },
    deletions: gasDeletions,
    taskTables: gasTaskTables,
    policy,
    signer,
    batches,
    svm,
    tradingKeys,
    evmAddressOf: createAddressReader('evm', (userId) => walletsOf(db, userId)),
    svmAddressOf: createAddressReader('svm', (userId) => walletsOf(db, userId)),
    loadSigning,
  }
}
export type Custody = ReturnType<typeof openCustody>
