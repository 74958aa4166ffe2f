import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { createFairQueue } from '#kernel/async/fair-queue.ts'

type Cost = { N: number; r: number; p: number }
export type DeriveKey = (password: string, salt: Uint8Array, cost: Cost) => Promise<Buffer>

const cost: Cost = { N: 32_768, r: 8, p: 3 }
const maxmem = 64 * 1024 * 1024
const saltBytes = 16
const hashBytes = 32

export const scryptKey: DeriveKey = (password, salt, { N, r, p }) =>
  new Promise((resolve, reject) =>
    scrypt(password, salt, hashBytes, { N, r, p, maxmem }, (error, key) =>
      error ? reject(error) : resolve(key),
    ),
  )

/**
 * Who requests a key derivation: the network address or, if the browser is known, the person. Requesters take turns.
 */
export type Requester = { address: string; knownPerson?: string | undefined }
export type Passwords = {
  /** Throws `overloaded`, without a derivation, if too many requesters wait. */
  hash(password: string, requester: Requester): Promise<string>
  /** Throws `overloaded` as `hash` does. An unknown person costs the same time as a wrong password. */
  isRight(password: string, stored: string | undefined, requester: Requester): Promise<boolean>
}

/**
 * A derivation takes 32 MiB, so at most two run at a time: one that anybody may ask for, and one for browsers in which
 * the person has signed in before. Addresses, and people, take turns, so the queue of one does not delay the others.
 */
const turns = { runsMax: 1, waitingMax: 50, waitingOfKeyMax: 10 }

const form = /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([\w-]{22})\$([\w-]{43})$/
const noSalt = Buffer.alloc(saltBytes)

export function createPasswords(deriveKey: DeriveKey = scryptKey): Passwords {
  const ofStrangers = createFairQueue(turns)
  const ofKnownBrowsers = createFairQueue(turns)
  const derive = (
    password: string,
    { salt, of = cost }: { salt: Uint8Array; of?: Cost },
    { address, knownPerson }: Requester,
  ): Promise<Buffer> => {
    const job = () => deriveKey(password.normalize('NFKC'), salt, of)
    return knownPerson === undefined ? ofStrangers.run(address, job) : ofKnownBrowsers.run(knownPerson, job)
  }

  return {
    async hash(password, requester) {
      const salt = randomBytes(saltBytes)
      const hash = await derive(password, { salt }, requester)
      return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), hash.toString('base64url')].join(
        '$',
      )
    },
    async isRight(password, stored, requester) {
      const [, N, r, p, salt, hash] = form.exec(stored ?? '') ?? []
      if (salt === undefined || hash === undefined) {
        await derive(password, { salt: noSalt }, requester)
        return false
      }
      const of = { N: Number(N), r: Number(r), p: Number(p) }
      const derived = await derive(password, { salt: Buffer.from(salt, 'base64url'), of }, requester)
      return timingSafeEqual(derived, Buffer.from(hash, 'base64url'))
    },
  }
}
