import { Fault } from '#kernel/fault.ts'
import type { DecodedInstruction, SvmDecoder, SvmInstruction, SvmSpend } from '#kernel/signer.ts'
import type { ProposedRoute, SolanaInstruction } from '#kernel/swap-provider.ts'
import type { SwapTerms } from './terms.ts'

/** A proposed deposit on Solana: one transfer of exactly the amount to a configured account, and its memo. */

export type SafeSvmRoute = {
  family: 'solana'
  instructions: SvmInstruction[]
  lookupTables: string[]
  spends: SvmSpend[]
  /** The account that receives the deposit. */
  target: string
}
export type SvmRouteRules = {
  decoder: SvmDecoder
  /** Accounts that may receive deposits. */
  recipients: readonly string[]
}

function assert(holdsTrue: boolean, what: string): asserts holdsTrue {
  if (!holdsTrue)
    throw new Fault('upstream_changed', `The provider proposed ${what}; the quote is refused`, {
      extras: { reason: 'quote_refused' },
    })
}

export function safeSvmRoute(
  { decoder, recipients }: SvmRouteRules,
  route: ProposedRoute,
  terms: SwapTerms,
): SafeSvmRoute {
  const { steps } = route
  assert(steps.family === 'solana' && steps.chainId === terms.origin.chain.id, 'steps on another chain')
  const decoded = steps.instructions.map((each) => [each, decodedOf(decoder, each)] as const)
  const transfers = decoded.flatMap(([, read]) =>
    read.name === 'transfer_lamports' || read.name === 'transfer_tokens' ? [read] : [],
  )
  const [transfer, ...others] = transfers
  assert(transfer !== undefined && others.length === 0, 'not exactly one transfer')
  const target = recipients.find((each) => isTo(decoder, transfer, each))
  assert(target !== undefined, 'a transfer to an account that is not configured')
  assertTransfer(transfer, terms, route)
  const memos = decoded.flatMap(([each, read]) => (read.name === 'memo' ? [textOf(each)] : []))
  assert(
    memos.length === 1 && memos[0]!.toLowerCase() === route.providerRequestId.toLowerCase(),
    'a deposit for another request',
  )
  return {
    family: 'solana',
    instructions: steps.instructions,
    lookupTables: steps.lookupTables,
    spends: [{ token: terms.origin.token.address, amountUnits: route.amountInUnits, to: target }],
    target,
  }
}

const allowed: readonly string[] = [
  'transfer_lamports',
  'transfer_tokens',
  'memo',
  'compute_limit',
  'compute_price',
]

function decodedOf(decoder: SvmDecoder, instruction: SolanaInstruction): DecodedInstruction {
  const { programId, accounts, data } = instruction
  const read = decoder.decodeInstruction({ programId, accounts, data: Buffer.from(data, 'hex') })
  assert(read !== undefined && allowed.includes(read.name), 'an instruction beside the deposit')
  return read
}

type Transfer = Extract<DecodedInstruction, { name: 'transfer_lamports' | 'transfer_tokens' }>

const isTo = (decoder: SvmDecoder, transfer: Transfer, recipient: string): boolean =>
  transfer.to === recipient ||
  (transfer.name === 'transfer_tokens' &&
    transfer.to === decoder.tokenAccountOf(recipient, transfer.mint, transfer.tokenProgram))

function assertTransfer(transfer: Transfer, { origin, account }: SwapTerms, route: ProposedRoute): void {
  if (transfer.name === 'transfer_lamports') {
    assert(origin.isNative, 'a transfer of another token')
    assert(transfer.from === account, 'a transfer of another account')
    assert(transfer.lamports === route.amountInUnits, 'a transfer of another amount')
    return
  }
  assert(!origin.isNative && transfer.mint === origin.token.address, 'a transfer of another token')
  assert(transfer.authority === account, 'a transfer of another account')
  assert(transfer.amountUnits === route.amountInUnits, 'a transfer of another amount')
}

const textOf = ({ data }: SolanaInstruction): string => Buffer.from(data, 'hex').toString('utf8')
