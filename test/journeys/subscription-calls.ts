/** Plans, as users buy them and as their payers pay for them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { eventually, newAgent } from '../harness/gateway.ts'
import { cards, pay } from '../harness/payer.ts'
import { type Person, personOf } from './users.ts'

export const plusPrice = 'price_local_plus_month'
export const proPrice = 'price_local_pro_month'
export const yearPrice = 'price_local_pro_year'
/** It costs what the plan pro costs. */
export const teamPrice = 'price_local_team_month'
export const plusCredits = 800
export const proCredits = 4_000

export type Checkout = {
  code?: string
  reason?: string
  detail?: unknown
  checkout_url: string
  checkout_id: string
  plan: string
  price_usd: string
  interval: string
  status: string
  expires_at: string
  reused: boolean
}
export type PlanView = {
  code?: string
  plan: string | null
  price_id: string | null
  status: string
  current_period_end: string | null
  cancel_at_period_end: boolean
  pay_url: string | null
  payments: {
    invoice_id: string
    status: string
    amount_usd: string
    refunded_usd: string
    dispute: string | null
    credits: number
    credits_taken_back: number
  }[]
}
type Bucket = { kind: string; credits: number; expires_at: string | null }
type Event = { type: string; data: Record<string, unknown> }

export const checkout = (
  person: Person,
  price: string = plusPrice,
  { intent = randomUUID(), key }: { intent?: string; key?: string } = {},
) =>
  person.call<Checkout>('POST /v1/subscriptions/checkout', {
    body: { price_id: price, client_intent_id: intent },
    ...(key !== undefined && { key }),
  })

/** The gateway reads the clock of the world once a second; before that, the provider refuses its times. */
export const opened = (person: Person, price?: string, intent?: string): Promise<Checkout> =>
  eventually(async () => {
    const { status, body } = await checkout(person, price, intent === undefined ? {} : { intent })
    if (status === 502) return undefined
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }, 'a page')

export const planOf = async (person: Person): Promise<PlanView> =>
  (await person.call<PlanView>('GET /v1/subscriptions')).body

export const planCredits = async (person: Person): Promise<number> => {
  const { body } = await person.call<{ buckets: Bucket[] }>('GET /v1/credits')
  return body.buckets.filter(({ kind }) => kind === 'plan').reduce((sum, { credits }) => sum + credits, 0)
}
export const allCredits = async (person: Person): Promise<number> =>
  (await person.call<{ credits_available: number }>('GET /v1/credits')).body.credits_available

export const creditsBecome = (person: Person, credits: number, msMax?: number) =>
  eventually(
    async () => ((await planCredits(person)) === credits ? true : undefined),
    `the plan brings ${credits} credits`,
    msMax,
  ).catch(async (error: Error) => {
    throw new Error(`${error.message}: ${await planCredits(person)}, ${JSON.stringify(await planOf(person))}`)
  })
export const planBecomes = (person: Person, is: (plan: PlanView) => boolean, what: string) =>
  eventually(async () => {
    const plan = await planOf(person)
    return is(plan) ? plan : undefined
  }, what)

/** The kinds and credits of the entries that the plan made, newest first. */
export async function planHistory(person: Person): Promise<number[]> {
  const { body } = await person.call<{ items: { kind: string; credits: number }[] }>(
    'GET /v1/credits/history?limit=100',
  )
  return body.items.filter(({ kind }) => kind === 'plan').map(({ credits }) => credits)
}
/** Newest first. */
export async function planEvents(person: Person): Promise<string[]> {
  const { body } = await person.call<{ events: Event[] }>('GET /v1/notifications?limit=100')
  const types = body.events.map(({ type }) => type)
  return types.filter((type) => type.startsWith('subscription.')).reverse()
}

export const newPerson = async (url: string): Promise<Person> => personOf(url, await newAgent(url))

/** A person whose plan is paid and whose credits have come. */
export async function subscriber(
  url: string,
  {
    price = plusPrice,
    card = cards.paid,
    credits = plusCredits,
    person: known,
  }: { price?: string; card?: string; credits?: number; person?: Person } = {},
): Promise<Person> {
  const person = known ?? (await newPerson(url))
  await pay((await opened(person, price)).checkout_url, card)
  await creditsBecome(person, credits)
  return person
}
