import type { Config } from '#config.ts'
import type { SigningChain } from '#engines/custody/evm-rules.ts'
import { createEnvKek, createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import type { SigningPredictionVenue } from '#engines/custody/prediction-rules.ts'
import type { SigningSvmChain } from '#engines/custody/svm-rules.ts'
import type { SigningVenue } from '#engines/custody/venue-rules.ts'
import { imageBytesMax } from '#features/image/image.ts'
import { placesMax } from '#features/notifications/webhooks/delivery-slots.ts'
import { attemptTimeoutMs } from '#features/notifications/webhooks/post-message.ts'
import type { PerpLimits } from '#features/perp/limits.ts'
import type { PlatformLimits } from '#features/policy/policy.ts'
import type { Random } from '#kernel/id.ts'
import type { Chain } from '#kernel/money/chains.ts'
import type { ModelPrices } from '#kernel/money/model-token-prices.ts'
import { nativeDecimals, toUnits, usdDecimals } from '#kernel/money/money.ts'
import { publishedBridges } from '#kernel/money/venue-actions.ts'
import { isRemote } from '#kernel/wire/remote-url.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { createVaultTransit } from '#upstreams/kms/kms.ts'
import type { RelayerKey } from '#upstreams/polymarket/auth-headers.ts'
import {
  exchanges,
  chainId as predictionChainId,
  contracts as predictionContracts,
} from '#upstreams/polymarket/contracts.ts'
import { walletsOf } from '#upstreams/polymarket/wallet-addresses.ts'
import { svmCaps, swapCaps, swapContractsOf } from './custody-swap-caps.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

/** Converts the settings into the form that each part needs. */

const micros = (usd: string): bigint => toUnits(usd, usdDecimals)

export function keysOf(config: Config, net: Net, random: Random): KeyEncryptionKeys {
  const local = config.KEY_ENCRYPTION_KEYS.map(({ id, key }) => createEnvKek(id, key, random))
  const { VAULT_TRANSIT_URL: url, VAULT_TRANSIT_TOKEN: token = '', VAULT_TRANSIT_KEY: key } = config
  const [current, ...former] = url
    ? [createVaultTransit({ net, id: `transit:${key}`, url, token, key }), ...local]
    : local
  if (!current) throw new Error('no key-encryption key')
  return createKeyEncryptionKeys(current, ...former)
}

export const modelPrices = ({ MODEL_PRICE_IN, MODEL_PRICE_OUT }: Config): ModelPrices => ({
  in: MODEL_PRICE_IN,
  out: MODEL_PRICE_OUT,
})

/** A webhook gets one request at a time, so one origin needs one socket per webhook that is delivered to. */
export const webhookGuard = ({ WEBHOOK_LOOPBACK }: Config) => ({
  timeoutMs: attemptTimeoutMs,
  connections: placesMax,
  allowLoopback: WEBHOOK_LOOPBACK === 'allowed',
})

/**
 * Allows images at loopback addresses only if the image service itself is local: a public service must name public
 * addresses.
 */
export const imageGuard = ({ images, control }: Pick<UpstreamUrls, 'images' | 'control'>) => ({
  timeoutMs: 15_000,
  connections: 16,
  bytesMax: imageBytesMax,
  allowLoopback: control !== undefined || !isRemote(images),
})

/** Returns the gas that sponsors pay per user and day on a chain, in its native coin. */
export const userGasPerDay =
  ({ SPONSOR_USER_DAY: { otherwise, byChain } }: Config) =>
  (chainId: string): bigint =>
    toUnits(byChain.get(chainId) ?? otherwise, nativeDecimals)

/** Returns the least time from the creation of a task to its deletion; null if tasks are kept. */
export function taskTtlMs({ TASK_RETENTION_DAYS, MONEY_TASK_RETENTION_DAYS }: Config): number | null {
  const days = Math.min(TASK_RETENTION_DAYS ?? Infinity, MONEY_TASK_RETENTION_DAYS ?? Infinity)
  return Number.isFinite(days) ? days * 86_400_000 : null
}

export const rateLimits = (config: Config) => {
  const perMinute = (points: number) => ({ points, windowSeconds: 60 })
  return {
    auth: perMinute(config.RATE_AUTH),
    read: perMinute(config.RATE_READ),
    money: perMinute(config.RATE_MONEY),
    exit: perMinute(config.RATE_EXIT),
    stream: perMinute(config.RATE_STREAM),
    image: perMinute(config.RATE_IMAGE),
    refused: perMinute(config.RATE_REFUSED),
  }
}

/** Descriptors reserved for the database, upstreams and files of this process. */
const descriptorsReserved = 256
const connectionsMaxDefault = 10_000

/** The process's file descriptors bound the connections, so that clients cannot exhaust those of other parts. */
export function connectionLimits({ CONNECTIONS_MAX, CONNECTIONS_PER_ADDRESS, TRUST_PROXY }: Config) {
  const max = CONNECTIONS_MAX ?? connectionsOf(openFilesMax())
  const perAddress = CONNECTIONS_PER_ADDRESS ?? Math.max(4, Math.floor(max / 4))
  return { max, perAddress: TRUST_PROXY.length > 0 ? Number.POSITIVE_INFINITY : perAddress }
}

const connectionsOf = (files: number): number =>
  Math.min(connectionsMaxDefault, Math.max(64, files - descriptorsReserved))

function openFilesMax(): number {
  // Without `excludeNetwork` the report resolves the host names of all peers; the Node types lack this setting.
  Object.assign(process.report, { excludeNetwork: true })
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } }
  const files = Number(userLimits?.open_files?.soft)
  return Number.isFinite(files) ? files : connectionsMaxDefault + descriptorsReserved
}

/** The chain id that identifies the venue. */
export const venueChainId = '999'

/** The deposit contract of the venue, and its chain. */
export function bridgeOf(config: Config) {
  const { chainId, address } = publishedBridges[config.HYPERLIQUID_NETWORK]
  return { chainId, address: config.HYPERLIQUID_BRIDGE_ADDRESS ?? address }
}

/** The contract, or wallet on Solana, that takes payments for credits on this chain. */
export function tillOf({ RECHARGE_TILLS }: Config, { id, native }: Pick<Chain, 'id' | 'native'>) {
  const till = RECHARGE_TILLS.find(({ chainId }) => chainId === id)
  if (!till) return undefined
  const maxUnits = toUnits(till.maxNative, native.decimals)
  return { address: till.address, maxUnits, native: native.address }
}

type Served = { venue: boolean; swaps: boolean; predictions: boolean }

export const platformLimits = (
  config: Config,
  table: readonly Chain[],
  { venue, swaps, predictions }: Served,
): PlatformLimits => ({
  perTransactionMicros: micros(config.POLICY_TX_USD_MAX),
  perDayMicros: micros(config.POLICY_DAY_USD_MAX),
  chains: [...table.map(({ id }) => id), ...(venue ? [venueChainId] : [])],
  tokens: null,
  contracts: [
    { chainId: config.EARN_CHAIN_ID, address: config.EARN_VAULT_ADDRESS },
    ...(venue ? [bridgeOf(config)] : []),
    ...(swaps ? table.flatMap(swapContractsOf) : []),
    ...(predictions
      ? [predictionContracts.onramp, predictionContracts.offramp].map((address) => ({
          chainId: String(predictionChainId),
          address,
        }))
      : []),
    ...table.flatMap((row) => (row.family === 'solana' ? svmRecipientsOf(config, row.id) : [])),
    ...config.RECHARGE_TILLS.map(({ chainId, address }) => ({ chainId, address })),
  ],
})

/** Custody's own limits: what one signature may release at most, independent of the policy. */
export const custodyChains = (
  config: Config,
  table: readonly Chain[],
  { venue, swaps, predictions }: Served,
): SigningChain[] =>
  table.flatMap((row) => {
    if (row.family !== 'evm' || row.delegate === null) return []
    const till = tillOf(config, row)
    return [
      {
        chainId: row.id,
        delegate: row.delegate,
        contracts: [
          ...(row.id === config.EARN_CHAIN_ID ? [config.EARN_VAULT_ADDRESS] : []),
          ...(venue && row.id === bridgeOf(config).chainId ? [bridgeOf(config).address] : []),
        ],
        ...(swaps && row.swaps && { swaps: { ...row.swaps, native: row.native.address } }),
        ...(till && { till }),
        ...(predictions && rampsOn(row)),
        maxUnits: {
          ...(swaps && swapCaps(row, micros(config.POLICY_TX_USD_MAX))),
          [row.usdc.toLowerCase()]: micros(config.POLICY_TX_USD_MAX),
          ...(predictions && row.id === String(predictionChainId) && predictionCaps(config)),
        },
        hasSettableClock: config.ENVIRONMENT === 'local',
      },
    ]
  })

const predictionCaps = (config: Config) => {
  const max = micros(config.POLICY_TX_USD_MAX)
  const { pusd, usdce, usdc } = predictionContracts
  return { [pusd.toLowerCase()]: max, [usdce.toLowerCase()]: max, [usdc.toLowerCase()]: max }
}

const svmRecipientsOf = (config: Config, chainId: string) =>
  config.SOLANA_RECIPIENTS.map((address) => ({ chainId, address }))

/** The priority of one transaction, in lamports. */
const maxPriorityLamports = 3_000_000n

export const custodySvmChains = (
  config: Config,
  table: readonly Chain[],
  {
    svmPorts,
    swaps,
  }: { svmPorts: ReadonlyMap<string, { sponsor: { signers: readonly string[] } }>; swaps: boolean },
): SigningSvmChain[] =>
  table.flatMap((row) => {
    const port = svmPorts.get(row.id)
    if (!port || row.family !== 'solana') return []
    return [
      {
        chainId: row.id,
        feePayers: port.sponsor.signers,
        native: row.native.address,
        maxUnits: svmCaps(row, micros(config.POLICY_TX_USD_MAX)),
        programs: [],
        ...(swaps && row.depository !== null && { depository: row.depository }),
        maxPriorityLamports,
        till: tillOf(config, row),
      },
    ]
  })

/** The key with which the relayer of the prediction market pays for wallets; undefined if the operator has none. */
export const polymarketRelayerKey = ({ POLYMARKET_BUILDER_KEY: key }: Config): RelayerKey | undefined =>
  key && { type: 'builder', ...key }

const zeroWord = `0x${'0'.repeat(64)}`

export const custodyPrediction = (config: Config): SigningPredictionVenue => ({
  venue: 'polymarket',
  chainId: String(predictionChainId),
  walletsOf,
  cashToken: predictionContracts.pusd,
  exchanges: Object.keys(exchanges),
  spenders: predictionSpenders,
  ramps: [predictionContracts.onramp, predictionContracts.offramp],
  shareTokens: [predictionContracts.conditionalTokens, predictionContracts.positionManager],
  redeemers: [
    predictionContracts.collateralAdapter,
    predictionContracts.negRiskCollateralAdapter,
    predictionContracts.router,
  ],
  builder: config.POLYMARKET_BUILDER_CODE ?? zeroWord,
  maxMicros: micros(config.POLICY_TX_USD_MAX),
  operations: {
    approve: ['predmkt_setup', 'predmkt_setup_v2'],
    withdraw: ['predmkt_withdraw'],
    redeem: ['predmkt_redeem'],
    fund: ['predmkt_fund'],
    migrate: ['predmkt_setup_v2'],
  },
  hasSettableClock: config.ENVIRONMENT === 'local',
})

/** The contracts that the venue needs approvals for. */
const predictionSpenders = [
  predictionContracts.standardExchange,
  predictionContracts.negRiskExchange,
  predictionContracts.exchangeV3,
  predictionContracts.collateralAdapter,
  predictionContracts.negRiskCollateralAdapter,
  predictionContracts.router,
  predictionContracts.binaryModule,
  predictionContracts.negRiskModule,
  predictionContracts.autoRedeem,
]

const rampsOn = (row: Chain) =>
  row.id === String(predictionChainId)
    ? {
        ramps: {
          contracts: [predictionContracts.onramp, predictionContracts.offramp],
          walletsOf: walletAddressesOf,
        },
      }
    : {}
const walletAddressesOf = (owner: string) => walletsOf(owner).map(({ wallet }) => wallet)

export const custodyVenue = (config: Config): SigningVenue => ({
  venue: 'hyperliquid',
  chainId: venueChainId,
  maxMicros: micros(config.POLICY_TX_USD_MAX),
  hasSettableClock: config.ENVIRONMENT === 'local',
})

const documentedWeight = 1_200
/** Returns the venue's request weight per minute; the quiet local world has no rate limit, which 0 stands for. */
export const venueWeightOf = ({
  HYPERLIQUID_WEIGHT_PER_MINUTE: set,
  HYPERLIQUID_URL: url,
  WORLD_REALISM: realism,
}: Config): number => set ?? (url === 'local' && realism === 'quiet' ? 0 : documentedWeight)

export const venueStreamUrl = ({ HYPERLIQUID_WS_URL: set }: Config, url: string): string =>
  set ?? `${url.replace(/^http/, 'ws')}/ws`

export const perpLimitsOf = (config: Config): PerpLimits => ({
  minOrderUsd: config.HYPERLIQUID_MIN_ORDER_USD,
  minFundUsd: config.HYPERLIQUID_MIN_FUND_USD,
  minWithdrawUsd: config.HYPERLIQUID_MIN_WITHDRAW_USD,
  withdrawFeeUsd: config.HYPERLIQUID_WITHDRAW_FEE_USD,
})
