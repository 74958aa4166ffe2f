/** A payer in front of the pages of the local payment provider, and the controls of that provider. */
import assert from 'node:assert/strict'
import { eventually, http } from './gateway.ts'

export const cards = {
  paid: '4242 4242 4242 4242',
  declined: '4000 0000 0000 0002',
  asks: '4000 0025 0000 3155',
  noFunds: '4000 0000 0000 9995',
  disputed: '4000 0000 0000 0259',
  renewalFails: '4000 0000 0000 0341',
} as const
export const day = 86_400

type Paid = { status: number; location: string | null; text: string }

/** Sends the form of a page, as a browser does. */
export async function sendForm(url: string, fields: Record<string, string>): Promise<Paid> {
  const reply = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  })
  return { status: reply.status, location: reply.headers.get('location'), text: await reply.text() }
}

const cardFields = (card: string) => ({ card, email: 'ada@example.com', expiry: '12 / 34', cvc: '123' })

export async function pay(url: string, card: string = cards.paid): Promise<void> {
  const { status, text } = await sendForm(url, cardFields(card))
  assert.equal(status, 303, text)
}
export const tryToPay = (url: string, card: string, more: Record<string, string> = {}): Promise<Paid> =>
  sendForm(url, { ...cardFields(card), ...more })

export type Dial = {
  origin?: string
  duplicates?: number
  reorder?: boolean
  delay_seconds?: number
  drop?: boolean
  forged?: boolean
  changed?: boolean
  old?: boolean
  future?: boolean
  live?: boolean
}

export function providerOf(control: string) {
  const ask = async <B>(method: string, path: string, body?: unknown): Promise<B> => {
    const reply = await http<B>(control + path, { method, ...(body !== undefined && { body }) })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }
  const events = () => ask<{ pending: number }>('GET', '/stripe/events')
  return {
    dial: (dial: Dial) => ask('PUT', '/stripe/events', dial),
    honest: () => ask('DELETE', '/stripe/events'),
    errors: (count: number, acts = false) => ask('PUT', '/stripe/errors', { count, acts }),
    advance: (seconds: number) => ask('POST', '/time', { advance_seconds: seconds }),
    faults: (fault: object) => ask('PUT', '/faults', { target: 'stripe', ...fault }),
    heal: () => ask('DELETE', '/faults', { target: 'stripe' }),
    /** How many requests the present fault has met. */
    async hits(): Promise<number> {
      const { faults } = await ask<{ faults: { target: string; hits: number }[] }>('GET', '/faults')
      return faults.find(({ target }) => target === 'stripe')?.hits ?? 0
    },
    /** Once all events are delivered, or given up. */
    delivered: () =>
      eventually(async () => ((await events()).pending === 0 ? true : undefined), 'no event is left'),
  }
}
export type Provider = ReturnType<typeof providerOf>
