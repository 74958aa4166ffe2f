import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Form } from '#edges/oauth/provider/request-bodies.ts'
import type { PageExchange, SignedInSession } from '#edges/oauth/sign-in/browser-session.ts'
import type { Person } from '#features/oauth/email-sign-in.ts'
import type { Caller } from '#kernel/contract/caller.ts'

/** A request to the account page from a browser in which a person is signed in. */
export type AccountRequest = {
  request: FastifyRequest
  reply: FastifyReply
  exchange: PageExchange
  session: SignedInSession
  person: Person
  /** Absent if the page's token has ended or the account is suspended; acts by session alone still work. */
  caller: Caller | undefined
  /** Whether the person signed in to this session a short time ago, so that passkeys and keys may be changed. */
  isFresh: boolean
}
/** The account page shows this to a person after an act; `form` has the typed values, so that they can be corrected. */
export type Message = {
  notice?: string
  error?: string
  status?: number
  form?: Form
  madeKey?: { name: string; key: string }
}
export type AccountStep = (asked: AccountRequest, form: Form) => void | Promise<void>
