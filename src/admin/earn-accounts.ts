import { appendEvents } from '#durable/events/append-events.ts'
import { userTopic } from '#durable/events/notifier.ts'
import { freezeEarnAccount, unfreezeEarnAccount } from '#features/earn/earn-account-store.ts'
import { operatorText } from '#kernel/task/operator-text.ts'
import { query } from '#store/query.ts'
import { UsageError } from './arguments.ts'
import type { AdminCommand } from './command.ts'
import { userOf } from './users.ts'

/** Lists users whose vault deposits the audit or an operator has frozen. Withdrawals are never frozen. */

const listFrozen: AdminCommand['run'] = async (session) => {
  const { pool } = session.database
  await session.record(pool, { command: 'earn-accounts list' })
  const text = `select e.user_id, u.agent_id, e.chain_id, e.vault, e.reason, e.frozen_since, e.frozen_by, e.mismatch, e.compared_at
    from earn_account e join app_user u on u.id = e.user_id where e.state = 'frozen' order by e.frozen_since`
  session.print(await query(pool, text))
}

const setFrozen =
  ({ frozen }: { frozen: boolean }): AdminCommand['run'] =>
  async (session, args) => {
    const { database, clock } = session
    const { id } = await userOf(database.pool, args.positional('user'))
    const command = frozen ? 'earn-accounts freeze' : 'earn-accounts unfreeze'
    await database.transaction(async (tx) => {
      const rows = await query<{ chain_id: string; vault: string }>(
        tx,
        'select chain_id, vault from earn_account where user_id = $1',
        [id],
      )
      const by = operatorText(session)
      const now = clock.now()
      const reason = `operator: ${session.reason}`
      let changed = 0
      for (const { chain_id: chainId, vault } of rows) {
        const vaultKey = { chainId, vault }
        const isChanged = frozen
          ? await freezeEarnAccount(tx, id, vaultKey, { reason, by, now })
          : await unfreezeEarnAccount(tx, id, vaultKey, by)
        if (isChanged) changed += 1
      }
      if (changed === 0)
        throw new UsageError(
          `User ${id} has no ${frozen ? 'vault account to freeze' : 'frozen vault account'}.`,
        )
      await session.record(tx, { command, subject: id, details: { vaults: changed } })
      const data = { state: frozen ? 'frozen' : 'active', code: 'operator', reason, since: now.toISOString() }
      const event = { type: 'security.flagged', subject: { kind: 'account', id }, data }
      await appendEvents(tx, id, [event], now)
    })
    await session.notify([userTopic(id)])
    session.printLine(`Deposits of user ${id} into the vault are ${frozen ? 'frozen' : 'accepted again'}`)
  }

export const earnAccountCommands: readonly AdminCommand[] = [
  {
    name: 'earn-accounts list',
    changes: false,
    summary: 'list users whose deposits into the vault are frozen',
    run: listFrozen,
  },
  {
    name: 'earn-accounts freeze',
    positionals: ['<user>'],
    summary: 'freeze deposits of this user into the vault; withdrawals go on',
    run: setFrozen({ frozen: true }),
  },
  {
    name: 'earn-accounts unfreeze',
    positionals: ['<user>'],
    summary: 'accept deposits of this user into the vault again',
    run: setFrozen({ frozen: false }),
  },
]
