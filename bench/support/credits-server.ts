/** The statements behind `GET /v1/credits` with the same number of clients and connections, without HTTP. */

import { ledger } from '#durable/ledger/ledger.ts'
import { createCredits } from '#features/credits/credits.ts'
import { systemClock } from '#kernel/clock.ts'
import { openDatabase } from '#store/database.ts'
import { loadFor, median } from './measure.ts'

export type LoadSpec = { width: number; forMs: number }

const [url = '', poolMax = '', ...users] = process.argv.slice(2)
const database = openDatabase({ url, poolMax: Number(poolMax), applicationName: 'bench' })
const { available } = createCredits({ db: database.pool, ledger, clock: systemClock })
process.on('message', ({ width, forMs }: LoadSpec) => {
  void loadFor(forMs, width, (n) => available(users[n % users.length]!)).then(({ perSecond, ms }) =>
    process.send?.({ count: ms.length, perSecond, p50Us: median(ms) * 1_000, p99Us: 0, wrong: 0 }),
  )
})
