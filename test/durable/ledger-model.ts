/** The ledger as a few maps: what its database functions are compared with. */

/** `external` is the counterparty of all; the other names are accounts of users. */
type Beginning = {
  move: 'transfer' | 'hold'
  key: string
  debit: string
  credit: string
  amountUnits: bigint
}
type Ending = { move: 'post'; key: string; amountUnits?: bigint } | { move: 'void'; key: string }
export type Movement = Beginning | Ending
/** A balance that a chain showed, and the hold that a task takes of it. */
export type ModelAcceptance = {
  account: string
  key: string
  totalUnits: bigint
  version: bigint
  amountUnits: bigint
}
export type Verdict = 'accepted' | 'short' | 'stale' | 'refused'

export type Balance = { avail: bigint; held: bigint; version: bigint }
type Transfer = { debit: string; credit: string; amount: bigint; posted: bigint | null }
export type Model = { accounts: Map<string, Balance>; transfers: Map<string, Transfer> }

export const emptyModel = (): Model => ({ accounts: new Map(), transfers: new Map() })
export const external = 'external'

class Refused extends Error {
  readonly verdict: Verdict
  constructor(verdict: Verdict) {
    super(verdict)
    this.verdict = verdict
  }
}

export const balanceOf = ({ accounts }: Model, name: string): Balance =>
  accounts.get(name) ?? { avail: 0n, held: 0n, version: 0n }

/** Only a movement that is no hold raises the version. */
function change(model: Model, name: string, delta: { avail: bigint; held?: bigint; raises: boolean }): void {
  const { avail, held, version } = balanceOf(model, name)
  const raised = version + (delta.raises ? 1n : 0n)
  model.accounts.set(name, { avail: avail + delta.avail, held: held + (delta.held ?? 0n), version: raised })
}

function begin(model: Model, { move, key, debit, credit, amountUnits }: Beginning): void {
  if (model.transfers.has(key)) return
  if (debit !== external && balanceOf(model, debit).avail < amountUnits) throw new Refused('short')
  const posted = move === 'transfer' ? amountUnits : null
  model.transfers.set(key, { debit, credit, amount: amountUnits, posted })
  if (move === 'hold') {
    change(model, debit, { avail: -amountUnits, held: amountUnits, raises: false })
    return
  }
  change(model, debit, { avail: -amountUnits, raises: true })
  change(model, credit, { avail: amountUnits, raises: true })
}

function settle(model: Model, movement: Ending): void {
  const transfer = model.transfers.get(movement.key)
  if (!transfer) throw new Refused('refused')
  const { debit, credit, amount, posted } = transfer
  const wanted = movement.move === 'void' ? 0n : (movement.amountUnits ?? amount)
  if (posted !== null) {
    if ((posted === 0n) !== (wanted === 0n)) throw new Refused('refused')
    return
  }
  if (wanted > amount) throw new Refused('refused')
  model.transfers.set(movement.key, { ...transfer, posted: wanted })
  change(model, debit, { avail: amount - wanted, held: -amount, raises: true })
  if (wanted > 0n) change(model, credit, { avail: wanted, raises: true })
}

function attempt(model: Model, run: (copy: Model) => void): Verdict {
  const copy: Model = { accounts: new Map(model.accounts), transfers: new Map(model.transfers) }
  try {
    run(copy)
  } catch (error) {
    if (error instanceof Refused) return error.verdict
    throw error
  }
  model.accounts = copy.accounts
  model.transfers = copy.transfers
  return 'accepted'
}

/** All of them or none. */
export const applyToModel = (model: Model, movements: readonly Movement[]): Verdict =>
  attempt(model, (copy) => {
    for (const movement of movements)
      if ('debit' in movement) begin(copy, movement)
      else settle(copy, movement)
  })

/** Books what the chain shows, less what is on hold; then holds. */
export const acceptanceToModel = (model: Model, accepted: ModelAcceptance): Verdict =>
  attempt(model, (copy) => {
    const { account, key, totalUnits, amountUnits } = accepted
    const { avail, held, version } = balanceOf(copy, account)
    if (version !== accepted.version) throw new Refused('stale')
    // What is on hold stays there.
    const free = totalUnits - held
    const delta = (free < 0n ? 0n : free) - avail
    if (delta !== 0n) {
      change(copy, account, { avail: delta, raises: false })
      change(copy, external, { avail: -delta, raises: false })
    }
    begin(copy, { move: 'hold', key, debit: account, credit: external, amountUnits })
  })
