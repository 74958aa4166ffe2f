import { addressOf } from './chain/accounts.ts'
import { deployWalletCall, executeBatchCall, executeSafeCall } from './chain/calls.ts'
import type { Address, Call, Reads, Sender } from './chain/chain-terms.ts'
import type { Engine } from './machine.ts'
import type { RealismControl } from './realism.ts'
import { readBatch, readSafe } from './relay-checks.ts'
import { nextState, sendStored, stepEach } from './sent.ts'
import type { RelayTransaction } from './state.ts'
import { isUnderWay } from './venue.ts'

type Deps = { engine: Engine; sender: Sender; reads: Reads; realism: RealismControl }

const callOf = (transaction: RelayTransaction): Call => {
  const { type, from, body } = transaction
  if (type === 'WALLET-CREATE') return deployWalletCall(from as Address)
  if (type === 'WALLET') {
    const { batch, signature } = readBatch(body)
    return executeBatchCall(batch, signature)
  }
  const { transaction: safe, signature } = readSafe(body)
  return executeSafeCall(safe, signature)
}

const change = ({ engine }: Deps, { id }: RelayTransaction, fields: Partial<RelayTransaction>): void => {
  engine.submit({ kind: 'relayChange', id, change: fields })
}

/** `redeemPositions` of both adapters and `redeem` of the router. */
const redeemSelectors: readonly string[] = ['0x01b7037c', '0xd217a3cc']

const isRedeem = ({ type, body }: RelayTransaction): boolean =>
  type === 'WALLET' &&
  readBatch(body).batch.calls.some(({ data }) => redeemSelectors.includes(data.slice(0, 10)))

const begin = async (deps: Deps, transaction: RelayTransaction): Promise<void> => {
  const { engine, sender, reads, realism } = deps
  if (transaction.type === 'WALLET-CREATE' && (await reads.isDeployed(transaction.wallet as Address))) {
    change(deps, transaction, { state: 'STATE_FAILED', error: 'wallet already deployed' })
    return
  }
  const { precheckRate } = realism.current().relayer
  if (isRedeem(transaction) && realism.isHit('relayer', precheckRate)) {
    const error = 'PRECHECK_SKIPPED: redeem skipped: zero position balance'
    change(deps, transaction, { state: 'STATE_FAILED', error })
    return
  }
  const call = callOf(transaction)
  const reason = await sender.simulate(addressOf('relayer'), call)
  if (reason !== undefined) {
    change(deps, transaction, { state: 'STATE_FAILED', error: `execution reverted: ${reason}` })
    return
  }
  await sendStored({ engine, sender, account: 'relayer' }, call, (sent) => change(deps, transaction, sent))
}

const follow = async (deps: Deps, transaction: RelayTransaction): Promise<void> => {
  const state = await nextState(deps.sender, transaction)
  if (state === 'STATE_FAILED') change(deps, transaction, { state, error: 'transaction reverted' })
  else if (state) change(deps, transaction, { state })
}

/** Each transaction moves by one state in a run, so that a client sees every state. */
export const relayAll = async (deps: Deps): Promise<void> => {
  const { engine } = deps
  const due = [...engine.venue.state.relay.values()].filter(
    (each) => isUnderWay(each) && engine.nowMs() >= each.notBeforeMs,
  )
  await stepEach(due, (each) => (each.state === 'STATE_NEW' ? begin : follow)(deps, each))
}
