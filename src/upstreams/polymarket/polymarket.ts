import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { PredictionVenue } from '#kernel/money/prediction-venue.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { createAccountCalls, createAuthorize } from './account.ts'
import type { RelayerKey } from './auth-headers.ts'
import { createBuilderFees } from './builder-fees.ts'
import { createCatalogue, createMarketLookup } from './catalogue.ts'
import { protocols, zero32 } from './contracts.ts'
import { matching } from './foreign-text.ts'
import { polymarketMoney } from './money-calls.ts'
import { createOrderCalls } from './orders.ts'
import { protocolOf } from './outcome-ids.ts'
import { type OnSkipped, venueName } from './parse-markets.ts'
import { createPublicRecord } from './public-record.ts'
import { createRelayer } from './relayer.ts'
import { createRequests, type Services } from './requests.ts'
import { createSetup } from './setup.ts'
import { createStreams } from './streams.ts'
import { walletsOf } from './wallet-addresses.ts'
import { BridgeAddresses } from './wire-data.ts'

export type { RelayerKey } from './auth-headers.ts'

export type PolymarketOptions = {
  urls: Services & { socket: string }
  net: Net
  clock: Clock
  random: Random
  log: Log
  /** Without it no account can be set up, and no money leaves a deposit wallet. */
  relayerKey?: RelayerKey | undefined
  /** 32 bytes as 0x and hexadecimal text. */
  builderCode?: string | undefined
  onSkipped?: OnSkipped
}

/** Money is sent to these addresses, so that anything else is none. */
const evmAddress = /^0x[0-9a-f]{40}$/i
const svmAddress = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
/** The bridge keeps the addresses of a wallet. */
const addressesMs = 600_000
const addressesMax = 10_000

export function createPolymarket(options: PolymarketOptions): PredictionVenue {
  const { urls, net, clock, random, log, relayerKey, onSkipped = () => {} } = options
  const builderCode = options.builderCode ?? zero32
  const requests = createRequests({ urls, net })
  const authorize = createAuthorize(clock)
  const market = createMarketLookup(requests, onSkipped)
  const addBuilderFee = createBuilderFees(requests, { builderCode, clock })
  const addresses = createTtlCache<{ evm: string | null; svm: string | null }>({
    ttlMs: addressesMs,
    entriesMax: addressesMax,
    nowMs: monotonicMs,
  })
  async function readAddresses(wallet: string) {
    const body = JSON.stringify({ address: wallet })
    const headers: Record<string, string> = builderCode === zero32 ? {} : { 'x-builder-code': builderCode }
    const { address } = await requests.read(
      { service: 'bridge', method: 'POST', path: '/deposit', body, headers },
      BridgeAddresses,
    )
    return { evm: matching(address.evm, evmAddress), svm: matching(address.svm, svmAddress) }
  }
  const orderDeps = { requests, authorize, market, clock, builderCode, addBuilderFee }
  return {
    name: venueName,
    protocols,
    walletsOf,
    protocolOf,
    ...createCatalogue(requests, { onSkipped, addBuilderFee }),
    ...createAccountCalls({ requests, authorize, clock }),
    ...createOrderCalls(orderDeps),
    ...createPublicRecord(requests, onSkipped),
    ...createStreams({ url: urls.socket, random, log }),
    ...(relayerKey && {
      setup: createSetup({ relayer: createRelayer({ requests, relayerKey, clock }), clock }),
    }),
    money: polymarketMoney,
    depositAddresses: (wallet) => addresses.get(wallet, () => readAddresses(wallet)),
  }
}
