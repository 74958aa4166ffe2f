import { createHash } from 'node:crypto'
import { predictionChain, worldChains } from '#world/evm/chains.ts'
import { type Address, contracts } from './chain/addresses.ts'
import { HttpError, ok, pick, type Reply, type Request, type Route, route } from './http.ts'
import type { Engine } from './machine.ts'
import type { Bridge, Carry, RelayState } from './state.ts'

const statusMax = 100
const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
const bech32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

const letters = (seed: Buffer, alphabet: string, length: number): string =>
  Array.from({ length }, (_, at) => alphabet[(seed[at % seed.length] ?? 0) % alphabet.length]).join('')

/** One address for each destination: what arrives there goes on to it. Only those on EVM chains are watched. */
const openAddress = (kind: Bridge['kind'], to: Pick<Bridge, 'chainId' | 'token' | 'recipient'>): Bridge => {
  const target = `${to.chainId} ${to.token} ${to.recipient}`.toLowerCase()
  const seed = (chain: string) => digest(`bridge ${kind} ${target} ${chain}`)
  return {
    ...to,
    kind,
    evm: `0x${seed('evm').toString('hex').slice(0, 40)}`,
    svm: letters(seed('svm'), base58, 44),
    btc: `bc1q${letters(seed('btc'), bech32, 38)}`,
  }
}

export type BridgeAsset = {
  chainId: string
  chainName: string
  address: Address
  name: string
  symbol: string
  minUnits: bigint
}

const minUsd = (chainId: string): number => (chainId === '1' ? 7 : 2)

/** The dollars of the world's chains, and the market's own. */
export const bridgeAssets: readonly BridgeAsset[] = worldChains.flatMap(({ id, name: chainName, tokens }) =>
  [
    ...tokens.filter(({ symbol }) => symbol === 'USDC' || symbol === 'USDC.e'),
    ...(id === predictionChain
      ? [{ address: contracts.pusd, name: 'Polymarket USD', symbol: 'pUSD' } as const]
      : []),
  ].map(({ address, name, symbol }) => ({
    chainId: id,
    chainName,
    address,
    name,
    symbol,
    minUnits: BigInt(minUsd(id)) * 1_000_000n,
  })),
)

const supportedAssets = bridgeAssets.map(({ chainId, chainName, address, name, symbol }) => ({
  chainId,
  chainName,
  token: { name, symbol, address, decimals: 6 },
  minCheckoutUsd: minUsd(chainId),
}))

const requireAsset = (chainId: string, token: string): BridgeAsset => {
  const found = bridgeAssets.find(
    (each) => each.chainId === chainId && each.address.toLowerCase() === token.toLowerCase(),
  )
  if (!found) throw new HttpError(400, 'unsupported chain or token')
  return found
}

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

const requireWallet = (fields: Fields, name = 'address'): Address => {
  const wallet = required(fields, name)
  if (!/^0x[0-9a-fA-F]{40}$/.test(wallet)) throw new HttpError(400, `invalid ${name}`)
  return wallet as Address
}

const requireBuilderCode = ({ headers }: Request): string[] => {
  const code = headers['x-builder-code']
  if (code === undefined) return ['missing_builder_code']
  if (typeof code !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(code))
    throw new HttpError(400, 'malformed X-Builder-Code')
  return []
}

const notes = {
  deposit: 'Only certain chains and tokens are supported. See /supported-assets for details.',
  withdraw: 'Send funds to these addresses to bridge to your destination chain and token.',
}

const create = (engine: Engine, request: Request, kind: Bridge['kind']): Reply => {
  const warnings = requireBuilderCode(request)
  const fields = fieldsOf(request)
  const wallet = requireWallet(fields)
  const destination = () => {
    const { chainId, address } = requireAsset(
      required(fields, 'toChainId'),
      required(fields, 'toTokenAddress'),
    )
    return { chainId, token: address, recipient: requireWallet(fields, 'recipientAddr') }
  }
  const own = { chainId: predictionChain, token: contracts.pusd, recipient: wallet }
  const bridge = openAddress(kind, kind === 'deposit' ? own : destination())
  engine.submit({ kind: 'bridge', bridge })
  const body = { address: pick(bridge, ['evm', 'svm', 'btc']), note: notes[kind] }
  return { status: 201, body: warnings.length > 0 ? { ...body, warnings } : body }
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
  for (const side of ['from', 'to'])
    requireAsset(String(fields[`${side}ChainId`]), String(fields[`${side}TokenAddress`]))
  const units = required(fields, 'fromAmountBaseUnit')
  if (!/^[0-9]{1,30}$/.test(units)) throw new HttpError(400, 'cannot get quote')
  const usd = Number(units) / 1_000_000
  return ok({
    estCheckoutTimeMs: 25_000,
    estFeeBreakdown: {
      appFeeLabel: 'Fun.xyz fee',
      appFeePercent: 0,
      appFeeUsd: 0,
      fillCostPercent: 0,
      fillCostUsd: 0,
      maxSlippage: 0,
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

const statuses: Readonly<Partial<Record<RelayState, string>>> = {
  STATE_NEW: 'DEPOSIT_DETECTED',
  STATE_EXECUTED: 'PROCESSING',
  STATE_MINED: 'SUBMITTED',
  STATE_CONFIRMED: 'COMPLETED',
}

/** The hash is that of the transfer to the address, and is named at the end. */
const carryView = ({ bridge, chainId, token, units, state, originHash, createdMs }: Carry) => ({
  fromChainId: chainId,
  fromTokenAddress: token,
  fromAmountBaseUnit: units,
  toChainId: bridge.chainId,
  toTokenAddress: bridge.token,
  status: statuses[state],
  createdTimeMs: createdMs,
  ...(state === 'STATE_CONFIRMED' ? { txHash: originHash } : {}),
})

export const bridgeRoutes = (engine: Engine): Route[] => [
  route('GET /supported-assets', () => ok({ supportedAssets })),
  route('POST /quote', quote),
  route('POST /deposit', (request) => create(engine, request, 'deposit')),
  route('POST /withdraw', (request) => create(engine, request, 'withdraw')),
  route('GET /status/:address', (_request, [address = '']) => {
    const carries = [...engine.venue.state.carries.values()].filter(({ bridge: { evm, svm, btc } }) =>
      [evm, svm, btc].includes(address.startsWith('0x') ? address.toLowerCase() : address),
    )
    return ok({ transactions: carries.reverse().slice(0, statusMax).map(carryView), nextCursor: null })
  }),
]
