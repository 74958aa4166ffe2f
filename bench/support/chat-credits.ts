/** Credits for a bench of chats, without a payment. */
import type pg from 'pg'
import { type Agent, bearer, http } from '../../test/harness/gateway.ts'

export async function creditTo(
  pool: pg.Pool,
  { url, agent }: { url: string; agent: Agent },
  credits: number,
): Promise<void> {
  const { body } = await http<{ user_id: string }>(`${url}/v1/user`, { headers: bearer(agent) })
  const text = `select ledger_apply(jsonb_build_array(jsonb_build_object('move', 'transfer', 'key', 'bench:' || $1::text,
      'amountUnits', $2::text, 'reason', 'bench',
      'debit', jsonb_build_object('owner', ledger_system(), 'asset', 'credits', 'subAccount', 'external'),
      'credit', jsonb_build_object('owner', $1::text, 'asset', 'credits', 'subAccount', 'credits:purchased'))), null::uuid, 0, now())`
  await pool.query(text, [body.user_id, String(credits)])
}
