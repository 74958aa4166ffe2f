import type pg from 'pg'
import { eventually, type Gateway } from '../harness/gateway.ts'

type Lease = { admin: pg.Pool; market: string; survivor: Pick<Gateway, 'child'>; claimWithinMs: number }

/**
 * Moves the lease of a market away from the instance that started first: it is stopped where it holds no lock, until
 * another one has the lease, and stays stopped.
 */
export async function createLeaseMover({ admin, market, survivor, claimWithinMs }: Lease) {
  const { rows } = await admin.query<{ id: string }>('select id from instance order by started_at limit 1')
  const survivorId = rows[0]!.id
  const hasMoved = async (): Promise<true | undefined> => {
    const { rowCount } = await admin.query(
      'select 1 from market_lease where market = $1 and owner <> $2 and lease_until > clock_timestamp()',
      [market, survivorId],
    )
    return rowCount ? true : undefined
  }
  return () =>
    eventually(
      async () => {
        survivor.child.kill('SIGSTOP')
        const taken = await eventually(hasMoved, 'another instance has the lease', claimWithinMs).catch(
          () => undefined,
        )
        if (!taken) survivor.child.kill('SIGCONT')
        return taken
      },
      'the lease moves to another instance',
      5 * claimWithinMs,
    )
}
