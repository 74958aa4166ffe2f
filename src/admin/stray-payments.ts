import { operatorText } from '#kernel/task/operator-text.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import type { Session } from './session.ts'

/**
 * Lists and settles stray payments: payments to a contract for credits that pay for no task. An operator returns the
 * money, and records that here.
 */

const listedMax = 200

const listStray: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'credit-payments list' })
  // The user of the task need not be the payer.
  const text = `select p.chain_id, p.tx_hash, p.log_index, p.block, p.reason, p.payer, p.token, p.amount, p.task_id,
      t.user_id as task_user_id, w.user_id as payer_user_id, p.found_at
    from (select * from credit_payment where state = 'stray' order by found_at limit $1) p
    left join task t on t.id = p.task_id
    left join wallet w on case when w.kind = 'evm' then lower(w.address) else w.address end = p.payer
    order by p.found_at, p.chain_id, p.tx_hash, p.log_index`
  session.print(await query(pool, text, [listedMax]))
}

type PaymentName = { chainId: string; txHash: string; logIndex: string }

export async function resolveStrayPayment(
  tx: Tx,
  session: Session,
  { chainId, txHash: given, logIndex }: PaymentName,
): Promise<void> {
  // Signatures of Solana are case-sensitive, but the hashes of EVM chains are not.
  const txHash = /^0x/i.test(given) ? given.toLowerCase() : given
  if (!/^\d{1,9}$/.test(logIndex))
    throw new UsageError('The log must be the `log_index` that `credit-payments list` shows.')
  const rows = await query(
    tx,
    `update credit_payment set state = 'resolved', resolved_at = $4, resolved_by = $5, resolution = $6
     where chain_id = $1 and tx_hash = $2 and log_index = $3 and state = 'stray' returning payer, token, amount`,
    [chainId, txHash, Number(logIndex), session.clock.now(), operatorText(session), session.reason],
  )
  if (rows.length === 0)
    throw new UsageError('There is no such stray payment; `credit-payments list` shows them.')
  const subject = `${chainId} ${txHash} ${logIndex}`
  await session.record(tx, { command: 'credit-payments resolve', subject, details: { ...rows[0] } })
}

const resolve: AdminCommand['run'] = async (session, args) => {
  const txHash = args.positional('transaction')
  const payment = { chainId: args.positional('chain'), txHash, logIndex: args.positional('log') }
  await session.database.transaction((tx) => resolveStrayPayment(tx, session, payment))
  session.printLine(`Payment ${txHash} is resolved; this command moves no money`)
}

export const strayPaymentCommands: readonly AdminCommand[] = [
  {
    name: 'credit-payments list',
    changes: false,
    summary: 'list payments for credits that pay no task, oldest first',
    run: listStray,
  },
  {
    name: 'credit-payments resolve',
    positionals: ['<chain>', '<transaction>', '<log>'],
    summary: 'record that a stray payment was returned or settled otherwise; --why says how',
    run: resolve,
  },
]
