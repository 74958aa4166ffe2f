/** A gateway that sells plans, its payment provider, and Stripe's own client at that provider. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import Stripe from 'stripe'
import { freshGateway } from '../harness/gateway.ts'
import { providerOf } from '../harness/payer.ts'
import {
  planOf,
  plusCredits,
  plusPrice,
  proCredits,
  proPrice,
  teamPrice,
  yearPrice,
} from './subscription-calls.ts'
import type { Person } from './users.ts'
import { worldOf } from './world.ts'

export const plansForSale = [
  `${plusPrice}:plus:${plusCredits}`,
  `${proPrice}:pro:${proCredits}`,
  `${yearPrice}:pro:48000`,
  `${teamPrice}:team:${proCredits}`,
].join()

const apply = 'select ledger_apply($1::jsonb, null, 0, now())'
const externalOwner = '00000000-0000-7000-8000-000000000000'

type Sql = <Row extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<Row[]>

const spendingOf = (sql: Sql) => ({
  /** Spends credits of the plan, beside those of the sign-up that are spent first, or puts them on hold. */
  async spend(credits: number, person: Person, move: 'transfer' | 'hold' = 'transfer'): Promise<string> {
    const key = `spent:${randomUUID()}`
    const [account] = await sql<{ owner: string; sub_account: string }>(
      `select a.owner, a.sub_account from account a join app_user u on u.id = a.owner
       where u.agent_id = $1 and a.sub_account like 'credits:plan:%' and a.avail >= $2`,
      [person.agentId, credits],
    )
    const { owner, sub_account: subAccount } = account!
    const debit = { owner, asset: 'credits', subAccount }
    const credit = { owner: externalOwner, asset: 'credits', subAccount: 'external' }
    const amountUnits = String(credits)
    await sql(apply, [JSON.stringify([{ move, key, debit, credit, amountUnits, reason: 'test' }])])
    return key
  },
  release: (key: string) => sql(apply, [JSON.stringify([{ move: 'void', key }])]),
})

export type Shop = Awaited<ReturnType<typeof openShop>>

export async function openShop(env: Record<string, string> = {}, fresh: { ownWorld?: string } = {}) {
  const gateway = await freshGateway({ STRIPE_PLANS: plansForSale, ...env }, fresh)
  const { hostname, port } = new URL((await worldOf(gateway.world)).manifest.urls.stripe)
  const stripe = new Stripe('sk_test_portico_local_world', {
    host: hostname,
    port: Number(port),
    protocol: 'http',
  })
  const sql = async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> => {
    const client = new pg.Client({ connectionString: gateway.databaseUrl })
    await client.connect()
    try {
      return (await client.query<Row>(text, values)).rows
    } finally {
      await client.end()
    }
  }
  /** The newest payment of a person, at the provider. */
  const paymentOf = async (person: Person): Promise<string> => {
    const [payment] = (await planOf(person)).payments
    const invoice = await stripe.invoices.retrieve(payment!.invoice_id, { expand: ['payments'] })
    return String(invoice.payments?.data[0]?.payment.payment_intent)
  }
  return {
    gateway,
    provider: providerOf(gateway.world),
    stripe,
    sql,
    paymentOf,
    async disputeOf(person: Person): Promise<string> {
      const { data } = await stripe.disputes.list({ payment_intent: await paymentOf(person) })
      return data[0]!.id
    },
    /** Makes a page that the gateway does not know, for the user of another page. */
    foreignPage: (url: string, userId: string, price: string = plusPrice) => {
      const metadata = { portico_user: userId }
      return stripe.checkout.sessions.create({
        mode: 'subscription',
        line_items: [{ price, quantity: 1 }],
        success_url: `${url}/checkout/paid`,
        metadata,
        subscription_data: { metadata },
      })
    },
    ...spendingOf(sql),
    async calm(): Promise<void> {
      const provider = providerOf(gateway.world)
      await Promise.all([provider.honest(), provider.errors(0), provider.heal()])
    },
    close: () => gateway[Symbol.asyncDispose](),
  }
}
