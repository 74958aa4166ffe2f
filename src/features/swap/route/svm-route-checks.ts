import { Fault } from '#kernel/contract/fault.ts'
import type { SolanaDepository } from '#kernel/money/chains.ts'
import type { ProposedRoute, SolanaInstruction } from '#kernel/money/swap-provider.ts'
import type {
  DecodedInstruction,
  SvmDecoder,
  SvmDeposit,
  SvmInstruction,
  SvmSpend,
} from '#kernel/task/signer.ts'
import type { SwapTerms } from './terms.ts'

/**
 * A proposed deposit on Solana is either one of exactly the amount at Relay's program, which is rebuilt from
 * the gateway's own data, or one transfer to a configured account with its memo.
 */

export type SafeSvmRoute = {
  family: 'solana'
  instructions: SvmInstruction[]
  lookupTables: string[]
  spends: SvmSpend[]
  target: string
}
export type SvmRouteRules = {
  decoder: SvmDecoder
  recipients: readonly string[]
  deposit(deposit: SvmDeposit): SvmInstruction
}

function assert(holdsTrue: boolean, what: string): asserts holdsTrue {
  if (!holdsTrue)
    throw new Fault('upstream_changed', `The provider proposed ${what}; the quote is refused`, {
      extras: { reason: 'quote_refused' },
    })
}

type Read = readonly [SolanaInstruction, DecodedInstruction]
type Named<Name extends DecodedInstruction['name']> = Extract<DecodedInstruction, { name: Name }>

export function safeSvmRoute(rules: SvmRouteRules, route: ProposedRoute, terms: SwapTerms): SafeSvmRoute {
  const { steps } = route
  assert(steps.family === 'solana' && steps.chainId === terms.origin.chain.id, 'steps on another chain')
  const decoded = steps.instructions.map((each): Read => [each, decodedOf(rules.decoder, each)])
  // The gateway sets the priority fees, so the provider's fee instructions are dropped.
  const [first, ...others] = decoded.filter(([, { name }]) => !feeNames.includes(name))
  if (first?.[1].name !== 'bridge') return safeTransfer(rules, decoded, { route, terms, steps })
  assert(others.length === 0, 'an instruction beside the deposit')
  assertSigners(first[0], terms)
  assertDeposit(rules.decoder, first[1], { route, terms })
  const deposit = ownDeposit(rules.decoder, first[1], { route, terms })
  return {
    family: 'solana',
    instructions: [rules.deposit(deposit)],
    // The message names every account itself, so that no lookup table decides about what is signed.
    lookupTables: [],
    spends: [{ token: terms.origin.token.address, amountUnits: route.amountInUnits, to: deposit.vault }],
    target: deposit.vault,
  }
}

const feeNames: readonly string[] = ['compute_limit', 'compute_price']
const allowed: readonly string[] = ['transfer_lamports', 'transfer_tokens', 'memo', 'bridge', ...feeNames]

function decodedOf(decoder: SvmDecoder, instruction: SolanaInstruction): DecodedInstruction {
  const { programId, accounts, data } = instruction
  const read = decoder.decodeInstruction({ programId, accounts, data: Buffer.from(data, 'hex') })
  assert(read !== undefined && allowed.includes(read.name), 'an instruction beside the deposit')
  return read
}

type Proposed = { route: ProposedRoute; terms: SwapTerms }

const depositoryOf = ({ origin: { chain } }: SwapTerms): SolanaDepository => {
  const depository = chain.family === 'solana' ? chain.depository : null
  assert(depository !== null, 'a deposit on a chain without a depository')
  return depository
}

const assertSigners = ({ accounts }: SolanaInstruction, { account }: SwapTerms): void =>
  assert(
    accounts.every(({ address, isSigner }) => !isSigner || address === account),
    'a deposit that another account signs',
  )

function assertDeposit(decoder: SvmDecoder, read: Named<'bridge'>, { route, terms }: Proposed): void {
  const { program, state, vault } = depositoryOf(terms)
  const { origin, account } = terms
  assert(read.program === program, 'a deposit at a program that is not configured')
  assert(read.state === state && read.vault === vault, 'a deposit to an account that is not configured')
  assert(read.sender === account && read.depositor === account, 'a deposit of another account')
  assert(read.amountUnits === route.amountInUnits, 'a deposit of another amount')
  assert(read.depositId.toLowerCase() === route.depositId.toLowerCase(), 'a deposit for another order')
  assert(
    read.token === null ? origin.isNative : !origin.isNative && read.token.mint === origin.token.address,
    'a deposit of another token',
  )
  if (read.token === null) return
  const { mint, tokenProgram, source, vaultAccount } = read.token
  assert(
    source === decoder.tokenAccountOf(account, mint, tokenProgram) &&
      vaultAccount === decoder.tokenAccountOf(vault, mint, tokenProgram),
    'a deposit between accounts that are not configured',
  )
}

/** Rebuilds the deposit from the request, the chain table and derived accounts; only the id is the provider's. */
function ownDeposit(decoder: SvmDecoder, read: Named<'bridge'>, { route, terms }: Proposed): SvmDeposit {
  const depository = depositoryOf(terms)
  const { origin, account } = terms
  const accountOf = (owner: string, tokenProgram: string) =>
    decoder.tokenAccountOf(owner, origin.token.address, tokenProgram)
  const ofToken = (tokenProgram: string) => ({
    mint: origin.token.address,
    tokenProgram,
    source: accountOf(account, tokenProgram),
    vaultAccount: accountOf(depository.vault, tokenProgram),
  })
  return {
    ...depository,
    sender: account,
    depositor: account,
    token: read.token === null ? null : ofToken(read.token.tokenProgram),
    amountUnits: terms.amountInUnits,
    depositId: route.depositId,
  }
}

type Steps = Extract<ProposedRoute['steps'], { family: 'solana' }>

function safeTransfer(
  { decoder, recipients }: SvmRouteRules,
  decoded: readonly Read[],
  { route, terms, steps }: Proposed & { steps: Steps },
): SafeSvmRoute {
  assert(
    decoded.every(([, { name }]) => name !== 'bridge'),
    'an instruction beside the deposit',
  )
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
    memos.length === 1 && memos[0]!.toLowerCase() === route.depositId.toLowerCase(),
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

type Transfer = Named<'transfer_lamports' | 'transfer_tokens'>

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
