import { Fault } from '#kernel/contract/fault.ts'
import { type Chain, sameAddress, type Token } from '#kernel/money/chains.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Solana } from '#upstreams/solana/solana.ts'

export type HeldToken = {
  kind: 'native' | 'token' | 'earn_share'
  token: Token
  amountUnits: bigint
  verified: boolean
  /** The value of a vault's shares in its asset. */
  backing?: { asset: Token; amountUnits: bigint }
}
export type WalletReading = { block: bigint; held: HeldToken[] }

export type EarnShare = {
  chainId: string
  token: Token
  asset: Token
  assetsOf(sharesUnits: bigint): Promise<bigint>
}

type ReadRequest = {
  address: string
  /** Unverified tokens from the user's own tasks. */
  recentTokens: readonly Token[]
  share: EarnShare | null
  signal: AbortSignal
}

export async function readEvm(
  chain: Evm,
  { address, recentTokens, share, signal }: ReadRequest,
): Promise<WalletReading> {
  const { row } = chain
  const verified = row.tokens.map((token) => ({ kind: 'token' as const, token, verified: true }))
  const others = recentTokens.map((token) => ({ kind: 'token' as const, token, verified: false }))
  const shares = share ? [{ kind: 'earn_share' as const, token: share.token, verified: true }] : []
  const asked = [...verified, ...others, ...shares]
  const addresses = asked.map(({ token }) => token.address)
  const { head, nativeUnits, tokens } = await chain.balances(address, addresses, signal)
  const native: HeldToken = { kind: 'native', token: row.native, amountUnits: nativeUnits, verified: true }
  const listed = asked.map((each, index): HeldToken => ({ ...each, amountUnits: tokens[index] ?? 0n }))
  const held = [native, ...listed].filter((each) => each.amountUnits > 0n)
  return { block: head.number, held: await Promise.all(held.map((each) => withBacking(each, share))) }
}

/** Adds the value of vault shares in their asset; if that is unavailable now, the shares are listed without it. */
async function withBacking(held: HeldToken, share: EarnShare | null): Promise<HeldToken> {
  if (held.kind !== 'earn_share' || !share) return held
  try {
    return { ...held, backing: { asset: share.asset, amountUnits: await share.assetsOf(held.amountUnits) } }
  } catch (fault) {
    if (fault instanceof Fault) return held
    throw fault
  }
}

export async function readSolana(
  chain: Solana,
  { address, recentTokens, signal }: ReadRequest,
): Promise<WalletReading> {
  const { row } = chain
  const { slot, lamports, tokens } = await chain.holdings(address, signal)
  const native: HeldToken = { kind: 'native', token: row.native, amountUnits: lamports, verified: true }
  const listed = tokens.map(({ mint, amountUnits, decimals }): HeldToken => {
    const known = findToken(row, row.tokens, mint)
    const other = known ?? findToken(row, recentTokens, mint)
    // An unlisted mint gets a symbol from its address, because every holding has a symbol and decimals.
    const token = { ...(other ?? { symbol: mint.slice(0, 4), name: mint }), address: mint, decimals }
    return { kind: 'token', token, amountUnits, verified: known !== undefined }
  })
  return { block: slot, held: [native, ...listed].filter((each) => each.amountUnits > 0n) }
}

const findToken = (row: Pick<Chain, 'family'>, tokens: readonly Token[], address: string) =>
  tokens.find((token) => sameAddress(row, token.address, address))
