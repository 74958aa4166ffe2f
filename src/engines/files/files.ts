import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { isUuid, type Random, sha256, uuidv7 } from '#kernel/id.ts'
import type { KeyEncryptionKeys } from '#kernel/wire/sealed-secret.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'
import { createFileKeys } from './file-keys.ts'

/** Files that the gateway makes for users. Content is stored once, by SHA-256, and read at signed addresses. */

export const fileBytesMax = 5 * 1024 * 1024
const addressMs = 15 * 60_000
const nameMax = 200
const contentTypeForm = /^[a-z]+\/[a-z0-9.+-]+(?:; charset=utf-8)?$/

export type StoredFile = { id: string; sha256: string; name: string; contentType: string; size: number }
export type FileContent = StoredFile & { bytes: Uint8Array }
export type FileAddress = { sha256: string; file: string; exp: string; sig: string }

export type Files = {
  /** Stores a file; throws if the file is empty or too large. */
  put(owner: string, name: string, contentType: string, bytes: Uint8Array): Promise<StoredFile>
  /** Returns an address at which anybody can read the file for 15 minutes, unless account access ends before. */
  urlOf(file: Pick<StoredFile, 'id' | 'sha256'>): Promise<string>
  linkOf(file: Pick<StoredFile, 'id' | 'sha256'>): Promise<{ url: string; expiresAt: Date }>
  /** Returns the file of a valid address, and throws a not-found fault for any other address. */
  open(address: FileAddress): Promise<FileContent>
}

type FilesDeps = {
  db: Queryable
  keyEncryptionKeys: KeyEncryptionKeys
  clock: Clock
  random: Random
  baseUrl: () => string
}

export const fileTooLarge = (): Fault =>
  new Fault('conflict', `A file has from 1 to ${fileBytesMax} bytes`, { extras: { bytes_max: fileBytesMax } })

export function createFiles({ db, keyEncryptionKeys, clock, random, baseUrl }: FilesDeps): Files {
  const keys = createFileKeys({ db, keyEncryptionKeys, clock, random })
  const linkOf: Files['linkOf'] = async ({ id, sha256: digest }) => {
    const seconds = Math.floor(later(clock.now(), addressMs).getTime() / 1_000)
    const exp = String(seconds)
    const sig = await keys.sign(signedText({ sha256: digest, file: id, exp }))
    const url = `${baseUrl()}/files/${digest}?${new URLSearchParams({ file: id, exp, sig })}`
    return { url, expiresAt: new Date(seconds * 1_000) }
  }
  return {
    linkOf,
    urlOf: async (file) => (await linkOf(file)).url,
    async put(owner, name, contentType, bytes) {
      if (bytes.length === 0 || bytes.length > fileBytesMax) throw fileTooLarge()
      if (!contentTypeForm.test(contentType)) throw new Error(`no content type of a file: ${contentType}`)
      const now = clock.now()
      const digest = sha256(bytes)
      const row = {
        id: uuidv7(now, random),
        user_id: owner,
        sha256: Buffer.from(digest, 'hex'),
        name: name.slice(0, nameMax),
        content_type: contentType,
        created_at: now,
      }
      await storeContent(db, { sha256: row.sha256, bytes, now })
      await fetchAll(db, builder.insertInto('file').values(row))
      return { id: row.id, sha256: digest, name: row.name, contentType, size: bytes.length }
    },
    async open(address) {
      const seconds = /^\d{1,12}$/.test(address.exp) ? Number(address.exp) : 0
      const isSigned =
        /^[0-9a-f]{64}$/.test(address.sha256) &&
        isUuid(address.file) &&
        seconds * 1_000 > clock.now().getTime() &&
        (await keys.verify(signedText(address), address.sig))
      const found = isSigned ? await readFile(db, address, new Date(seconds * 1_000 - addressMs)) : undefined
      if (!found) throw noFile()
      return found
    },
  }
}

const signedText = ({ sha256: digest, file, exp }: Omit<FileAddress, 'sig'>) => [digest, file, exp].join('\n')

const noFile = () =>
  new Fault('not_found', 'There is no file at this address: it is wrong, or its 15 minutes are over')

type Content = { sha256: Buffer; bytes: Uint8Array; now: Date }
/** Stores content. The bytes are sent only if they are unknown; touching a known row keeps it from retention. */
async function storeContent(db: Queryable, { sha256: digest, bytes, now }: Content): Promise<void> {
  const text =
    'update file_content set stored_at = greatest(stored_at, $2) where sha256 = $1 returning 1 as known'
  if ((await query(db, text, [digest, now])).length > 0) return
  const insertion = `insert into file_content (sha256, bytes, stored_at) values ($1, $2, $3)
    on conflict (sha256) do update set stored_at = greatest(file_content.stored_at, excluded.stored_at)`
  await query(db, insertion, [digest, Buffer.from(bytes), now])
}

/** Voids the addresses of a user's files, in the transaction that ends an access to the account. */
export const endFileLinks = (tx: Queryable, userId: string, now: Date) =>
  query(
    tx,
    `insert into file_link_end (user_id, ended_at) values ($1, $2)
     on conflict (user_id) do update set ended_at = greatest(file_link_end.ended_at, excluded.ended_at)
     returning user_id`,
    [userId, now],
  )

async function readFile(
  db: Queryable,
  { sha256: digest, file }: FileAddress,
  madeAt: Date,
): Promise<FileContent | undefined> {
  const row = await fetchOne(
    db,
    builder
      .selectFrom('file')
      .innerJoin('file_content', 'file_content.sha256', 'file.sha256')
      .leftJoin('file_link_end', 'file_link_end.user_id', 'file.user_id')
      .select(['file.id', 'file.name', 'file.content_type', 'file_content.bytes'])
      .where('file.id', '=', file)
      .where('file.sha256', '=', Buffer.from(digest, 'hex'))
      .where((each) =>
        each.or([each('file_link_end.ended_at', 'is', null), each('file_link_end.ended_at', '<', madeAt)]),
      ),
  )
  if (!row) return undefined
  const { id, name, content_type: contentType, bytes } = row
  return { id, sha256: digest, name, contentType, size: bytes.length, bytes }
}
