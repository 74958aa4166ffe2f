import type { Address, WorldChain } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import { type Fields, HttpError, rejectUnknownFields, textField } from './router.ts'
import type { SolanaNode, SolanaToken } from './solana-node.ts'

export const solanaId = '7565164'

const zeroAddress = '0x0000000000000000000000000000000000000000'
const systemProgram = '11111111111111111111111111111111'
const wholeTokensMax = 1_000_000n
const wholeNativeMax = 1_000n
const solanaDefaultGrants = [
  { symbol: 'USDC', amount: '10000' },
  { symbol: 'JUP', amount: '100' },
  { symbol: 'PYUSD', amount: '100' },
]

type FaucetGrant = { token: string; symbol: string; amountUnits: bigint }
type FaucetToken = { token: string; symbol: string; decimals: number; native: boolean }

const unitsOf = (text: string, { decimals, native, symbol }: FaucetToken): bigint => {
  const match = /^(\d{1,18})(?:\.(\d{1,18}))?$/.exec(text)
  const fraction = match?.[2] ?? ''
  if (!match?.[1] || fraction.length > decimals) {
    throw new HttpError(400, `amount must be decimal text with at most ${decimals} digits after the point.`)
  }
  const units = BigInt(match[1] + fraction.padEnd(decimals, '0'))
  const wholeMax = native ? wholeNativeMax : wholeTokensMax
  if (units === 0n || units > wholeMax * 10n ** BigInt(decimals)) {
    throw new HttpError(400, `amount must be more than 0 and at most ${wholeMax} ${symbol}.`)
  }
  return units
}

/** One token by symbol, address or `native`; without a token the default grant. */
const readGrants = (
  fields: Fields,
  tokens: FaucetToken[],
  defaultGrants: { symbol: string; amount: string }[],
): FaucetGrant[] => {
  const find = (name: string) =>
    tokens.find(({ token, symbol, native }) =>
      [native ? 'native' : symbol, symbol, token].some((each) => each.toLowerCase() === name.toLowerCase()),
    )
  const requested =
    fields.token === undefined
      ? defaultGrants.map(({ symbol, amount }) => ({ name: symbol, amount }))
      : [{ name: textField(fields, 'token'), amount: textField(fields, 'amount') }]
  if (fields.token === undefined && fields.amount !== undefined) {
    throw new HttpError(400, 'amount requires a token.')
  }
  return requested.map(({ name, amount }) => {
    const found = find(name)
    if (!found) throw new HttpError(400, `token ${name} is unknown here; see the manifest at GET /.`)
    return { token: found.token, symbol: found.symbol, amountUnits: unitsOf(amount, found) }
  })
}

const evmTokens = ({ native, tokens }: WorldChain): FaucetToken[] => [
  { token: zeroAddress, symbol: native.symbol, decimals: 18, native: true },
  ...tokens.map(({ address, symbol, decimals }) => ({ token: address, symbol, decimals, native: false })),
]

const solanaTokens = (tokens: SolanaToken[]): FaucetToken[] => [
  { token: systemProgram, symbol: 'SOL', decimals: 9, native: true },
  ...tokens.map(({ mint, symbol, decimals }) => ({ token: mint, symbol, decimals, native: false })),
]

type FaucetDeps = { nodes: readonly EvmNode[]; solana: SolanaNode }

/** Grants tokens to any address, once per id. */
export const faucet = ({ nodes, solana }: FaucetDeps) => {
  const grantOnEvm = async (node: EvmNode, address: string, fields: Fields, id: string | undefined) => {
    if (!/^0x[0-9a-fA-F]{40}$/.test(address) || address === zeroAddress) {
      throw new HttpError(400, 'address must be an EVM address: 0x and 40 hex digits, not zero.')
    }
    const grants = readGrants(fields, evmTokens(node.chain), [...node.chain.defaultGrants])
    const { sendEvmGrant } = await import('./evm/faucet.ts')
    return sendEvmGrant(node, address as Address, grants, id)
  }

  const grantOnSolana = async (address: string, fields: Fields, id: string | undefined) => {
    if (!/^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(address)) {
      throw new HttpError(400, 'address must be a Solana address in base58.')
    }
    const credited = readGrants(fields, solanaTokens(await solana.tokens()), solanaDefaultGrants)
    const mints = credited.map(({ token, symbol, amountUnits }) => {
      const native = token === systemProgram
      const body = {
        address,
        amount_units: String(amountUnits),
        ...(native ? { symbol: 'native' } : { mint: token }),
      }
      return solana.mint(id === undefined ? body : { ...body, id: `${id}:${symbol}` })
    })
    const txHash = (await Promise.all(mints)).at(-1)?.signature ?? ''
    return { credited, txHash }
  }

  return async (fields: Fields) => {
    rejectUnknownFields(fields, ['chain_id', 'address', 'id', 'token', 'amount'])
    const chainId = textField(fields, 'chain_id')
    const address = textField(fields, 'address')
    const id = fields.id === undefined ? undefined : textField(fields, 'id')
    const node = nodes.find(({ chain }) => chain.id === chainId)
    if (!node && chainId !== solanaId) {
      throw new HttpError(
        400,
        `chain_id must be one of ${nodes.map(({ chain }) => chain.id).join(', ')}, ${solanaId}.`,
      )
    }
    if (node ? node.endpoint() === undefined : solana.port() === undefined) {
      throw new HttpError(503, `${node?.chain.name ?? 'Solana'} is stopped.`)
    }
    const { credited, txHash } = node
      ? await grantOnEvm(node, address, fields, id)
      : await grantOnSolana(address, fields, id)
    return {
      chain_id: chainId,
      address,
      credited: credited.map(({ token, symbol, amountUnits }) => ({
        token,
        symbol,
        amount_units: String(amountUnits),
      })),
      tx_hash: txHash,
    }
  }
}
