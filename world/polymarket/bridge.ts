import { createHash } from 'node:crypto'
import { contracts } from './chain/addresses.ts'
import { HttpError, ok, type Reply, type Request, type Route, route } from './http.ts'
import type { Engine } from './machine.ts'
import type { Bridge } from './state.ts'

const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const bech32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const letters = (seed: Buffer, alphabet: string, length: number): string =>
  Array.from({ length }, (_, at) => alphabet[(seed[at % seed.length] ?? 0) % alphabet.length]).join('')

/** Addresses of nobody: this world does not carry coins between chains here, it only names where they would go. */
const addressesOf = (kind: Bridge['kind'], wallet: string): Bridge => {
  const seed = (chain: string) => digest(`bridge ${kind} ${wallet.toLowerCase()} ${chain}`)
  return {
    wallet: wallet.toLowerCase(),
    kind,
    evm: `0x${seed('evm').toString('hex').slice(0, 40)}`,
    svm: letters(seed('svm'), base58, 44),
    btc: `bc1q${letters(seed('btc'), bech32, 38)}`,
  }
}

const supported = [
  {
    chainId: '1',
    chainName: 'Ethereum',
    address: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48',
    minCheckoutUsd: 7,
  },
  { chainId: '137', chainName: 'Polygon', address: contracts.usdc, minCheckoutUsd: 2 },
  { chainId: '137', chainName: 'Polygon', address: contracts.usdce, minCheckoutUsd: 2 },
  {
    chainId: '8453',
    chainName: 'Base',
    address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    minCheckoutUsd: 2,
  },
  {
    chainId: '42161',
    chainName: 'Arbitrum',
    address: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831',
    minCheckoutUsd: 2,
  },
  {
    chainId: '1151111081099710',
    chainName: 'Solana',
    address: 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v',
    minCheckoutUsd: 2,
  },
].map(({ address, ...rest }) => ({
  ...rest,
  token: { name: 'USD Coin', symbol: address === contracts.usdce ? 'USDC.e' : 'USDC', address, decimals: 6 },
}))

type Fields = Record<string, unknown>

const fieldsOf = ({ body }: Request): Fields => {
  if (typeof body !== 'object' || body === null) throw new HttpError(400, 'invalid request body')
  return body as Fields
}

const required = (fields: Fields, name: string): string => {
  const value = fields[name]
  if (typeof value === 'string' && value !== '') return value
  throw new HttpError(400, `${name} is required`)
}

const requireWallet = (fields: Fields): string => {
  const wallet = required(fields, 'address')
  if (!/^0x[0-9a-fA-F]{40}$/.test(wallet)) throw new HttpError(400, 'invalid address')
  return wallet
}

const requireBuilderCode = ({ headers }: Request): string[] => {
  const code = headers['x-builder-code']
  if (code === undefined) return ['missing_builder_code']
  if (typeof code !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(code))
    throw new HttpError(400, 'malformed X-Builder-Code')
  return []
}

const create = (engine: Engine, request: Request, kind: Bridge['kind']): Reply => {
  const warnings = requireBuilderCode(request)
  const fields = fieldsOf(request)
  const wallet = requireWallet(fields)
  if (kind === 'withdraw')
    for (const name of ['toChainId', 'toTokenAddress', 'recipientAddr']) required(fields, name)
  const bridge = addressesOf(kind, wallet)
  engine.submit({ kind: 'bridge', bridge })
  const { evm, svm, btc } = bridge
  const note =
    kind === 'deposit'
      ? 'Only certain chains and tokens are supported. See /supported-assets for details.'
      : 'Send funds to these addresses to bridge to your destination chain and token.'
  const body = { address: { evm, svm, btc }, note, ...(warnings.length > 0 ? { warnings } : {}) }
  return { status: 201, body }
}

const quoteFields = [
  'fromAmountBaseUnit',
  'fromChainId',
  'fromTokenAddress',
  'recipientAddress',
  'toChainId',
  'toTokenAddress',
]

const quote = (request: Request): Reply => {
  const fields = fieldsOf(request)
  for (const name of quoteFields) required(fields, name)
  const units = required(fields, 'fromAmountBaseUnit')
  if (!/^[0-9]{1,30}$/.test(units)) throw new HttpError(400, 'cannot get quote')
  const usd = Number(units) / 1_000_000
  const none = { appFeePercent: 0, appFeeUsd: 0, fillCostPercent: 0, fillCostUsd: 0, maxSlippage: 0 }
  return ok({
    estCheckoutTimeMs: 25_000,
    estFeeBreakdown: {
      appFeeLabel: 'Fun.xyz fee',
      ...none,
      gasUsd: 0.003854,
      minReceived: usd,
      swapImpact: 0,
      swapImpactUsd: 0,
      totalImpact: 0,
      totalImpactUsd: 0,
    },
    estInputUsd: usd,
    estOutputUsd: usd,
    estToTokenBaseUnit: units,
    quoteId: `0x${digest(JSON.stringify(fields)).toString('hex')}`,
  })
}

export const bridgeRoutes = (engine: Engine): Route[] => [
  route('GET /supported-assets', () => ok({ supportedAssets: supported })),
  route('POST /quote', quote),
  route('POST /deposit', (request) => create(engine, request, 'deposit')),
  route('POST /withdraw', (request) => create(engine, request, 'withdraw')),
  route('GET /status/:address', () => ok({ transactions: [] })),
]
