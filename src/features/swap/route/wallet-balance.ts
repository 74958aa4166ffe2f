import { type FreeUnits, readFreeUnits } from '#engines/free-units/free-units.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { TokenAt } from '#kernel/contract/token-ref.ts'
import { type Token, toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import type { AccountRef, ReadBalance } from '#kernel/task/task.ts'
import type { SwapTerms } from './terms.ts'

type BalanceDeps = Pick<SwapDeps, 'db' | 'ledger' | 'evmOf' | 'solana'>
type Held = Pick<TokenAt, 'chain' | 'isNative'> & { token: Pick<Token, 'address'> }
type Holder = { userId: string; account: string }

export const walletOf = (userId: string, { chain, token }: Held): AccountRef => ({
  owner: userId,
  asset: toAssetId(chain, token.address),
  subAccount: 'wallet',
})

export const walletBalance = (
  deps: BalanceDeps,
  { userId, account, requiredUnits }: Holder & { requiredUnits?: bigint },
  held: Held,
): Promise<FreeUnits> =>
  readFreeUnits(deps, {
    account: walletOf(userId, held),
    readTotal: () => walletUnits(deps, account, held),
    ...(requiredUnits !== undefined && { requiredUnits }),
  })

/** Returns the balance of the sold token; throws if it does not cover the swap. */
export async function coveringBalance(deps: BalanceDeps, terms: SwapTerms): Promise<ReadBalance> {
  const { origin, amountInUnits: requiredUnits } = terms
  const { userId, account } = terms
  const holder = { userId, account, requiredUnits }
  const { totalUnits, version, freeUnits } = await walletBalance(deps, holder, origin)
  if (freeUnits < requiredUnits)
    throw insufficientBalance(
      { ...origin.token, chainId: origin.chain.id },
      { what: 'The swap', requiredUnits, availableUnits: freeUnits },
    )
  return { totalUnits, version }
}

/** Reads the balance of one token only, because anybody can send a wallet thousands of other tokens. */
async function walletUnits(
  { evmOf, solana }: BalanceDeps,
  account: string,
  { chain, token: { address }, isNative }: Held,
): Promise<bigint> {
  const read = async () => {
    if (chain.family === 'solana') return solana?.balance(account, address, isNative)
    const held = await evmOf(chain.id)?.balances(account, isNative ? [] : [address])
    return isNative ? held?.nativeUnits : held?.tokens[0]
  }
  const units = await read()
  if (units === undefined) throw new Fault('unavailable', 'The chain returned no balance; try again later')
  return units
}
