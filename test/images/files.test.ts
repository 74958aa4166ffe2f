/** Files at signed addresses: what opens one, and what a browser learns about it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createEnvKek, createKeyEncryptionKeys } from '#engines/custody/key-encryption-keys.ts'
import { createFiles, type Files, fileBytesMax } from '#engines/files/files.ts'
import { fileDeletions } from '#engines/files/retention.ts'
import { systemRandom } from '#kernel/id.ts'
import { type Account, bytesOf, createImageApp, type ImageApp, made, type Picture } from './image-app.ts'

let app: ImageApp
let account: Account
let picture: Picture
before(async () => {
  app = await createImageApp()
  account = await app.account()
  const body = made(await app.ask({ user: account.userId, query: 'a whale, poster', image_size: '256x256' }))
  picture = body.images[0]!
})
after(() => app?.[Symbol.asyncDispose]())

const get = async (change: (url: URL) => void) => {
  const url = new URL(picture.url)
  change(url)
  const reply = await fetch(url)
  return {
    status: reply.status,
    text: reply.status === 200 ? '' : await reply.text(),
    headers: reply.headers,
  }
}

test('an address needs no credential, and says how the file may be used', async () => {
  const { status, headers } = await get(() => {})
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'image/png')
  assert.equal(headers.get('x-content-type-options'), 'nosniff')
  assert.match(headers.get('content-disposition')!, /^inline; filename="image-[0-9a-f]{8}-1\.png"/)
  assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
  assert.match(headers.get('cache-control')!, /^private/)
})

test('every change of an address is refused alike', async () => {
  const { searchParams, pathname } = new URL(picture.url)
  const changes: ((url: URL) => void)[] = [
    (url) => url.searchParams.delete('sig'),
    (url) => url.searchParams.set('sig', `${searchParams.get('sig')}A`),
    (url) => url.searchParams.set('sig', searchParams.get('sig')!.replace(/^./, 'f')),
    (url) => url.searchParams.set('exp', String(Number(searchParams.get('exp')) + 1)),
    (url) => url.searchParams.set('exp', '1e12'),
    (url) => url.searchParams.delete('exp'),
    (url) => url.searchParams.set('file', '01890000-0000-7000-8000-000000000000'),
    (url) => url.searchParams.set('file', "' or 1=1"),
    (url) => {
      url.pathname = `/files/${'0'.repeat(64)}`
    },
    (url) => {
      url.pathname = `${pathname.slice(0, -1)}g`
    },
    (url) => {
      url.pathname = '/files/%2e%2e%2fetc'
    },
  ]
  for (const change of changes) {
    const { status, text } = await get(change)
    assert.equal(status, 404, text)
    assert.equal((JSON.parse(text) as { code: string }).code, 'not_found')
  }
})

/** The store of another instance on the same database, with a clock of its own. */
const storeAt = (offsetMs = 0, key = Buffer.alloc(32, 7)): Files =>
  createFiles({
    db: app.admin,
    keyEncryptionKeys: createKeyEncryptionKeys(createEnvKek('test', key.toString('base64'), systemRandom)),
    clock: { now: () => new Date(Date.now() + offsetMs) },
    random: systemRandom,
    baseUrl: () => 'http://gateway.test',
  })
const addressOf = (text: string) => {
  const { pathname, searchParams } = new URL(text)
  const part = (name: string) => searchParams.get(name)!
  return { sha256: pathname.split('/')[2]!, file: part('file'), exp: part('exp'), sig: part('sig') }
}

test('an address ends after 15 minutes, and any instance opens it until then, also after the keys were rotated', async () => {
  const maker = storeAt()
  const file = await maker.put(
    account.userId,
    'report.html',
    'text/html; charset=utf-8',
    Buffer.from('<p>a</p>'),
  )
  const address = addressOf(await maker.urlOf(file))
  const opened = await storeAt(14 * 60_000).open(address)
  assert.deepEqual(
    [opened.name, opened.contentType, Buffer.from(opened.bytes).toString()],
    ['report.html', 'text/html; charset=utf-8', '<p>a</p>'],
  )
  await assert.rejects(storeAt(15 * 60_000 + 1_000).open(address), { code: 'not_found' })
  const later = storeAt(25 * 3_600_000)
  const next = addressOf(await later.urlOf(file))
  assert.notEqual(next.sig.split('.')[0], address.sig.split('.')[0])
  assert.equal((await later.open(next)).id, file.id)
  assert.equal((await storeAt().open(address)).id, file.id)
})

test('bytes are stored once, and a file has its bounds', async () => {
  const maker = storeAt()
  const bytes = Buffer.from(`content ${Math.random()}`)
  const [one, two] = [
    await maker.put(account.userId, 'a.txt', 'text/plain', bytes),
    await maker.put(account.userId, 'b.txt', 'text/plain', bytes),
  ]
  assert.equal(one.sha256, two.sha256)
  assert.notEqual(one.id, two.id)
  const { rows } = await app.admin.query('select count(*)::int as n from file_content where sha256 = $1', [
    Buffer.from(one.sha256, 'hex'),
  ])
  assert.equal(rows[0].n, 1)
  for (const wrong of [Buffer.alloc(0), Buffer.alloc(fileBytesMax + 1)])
    await assert.rejects(maker.put(account.userId, 'c', 'text/plain', wrong), { code: 'conflict' })
  await maker.put(account.userId, 'd', 'application/octet-stream', Buffer.alloc(fileBytesMax, 1))
})

test('files are deleted by age, and content with its last file', async () => {
  const maker = storeAt()
  const file = await maker.put(account.userId, 'old.txt', 'text/plain', Buffer.from(`old ${Math.random()}`))
  const stored = await maker.put(account.userId, 'kept.png', 'image/png', await bytesOf(picture))
  const old = "created_at = created_at - interval '40 days'"
  await app.admin.query(`update file set ${old} where id = $1`, [file.id])
  await app.admin.query("update file_content set stored_at = stored_at - interval '40 days'")
  for (const { text, ageMs } of fileDeletions(30 * 86_400_000))
    await app.admin.query(text, [new Date(Date.now() - ageMs), 1_000])
  await assert.rejects(maker.open(addressOf(await maker.urlOf(file))), { code: 'not_found' })
  const { rows } = await app.admin.query('select 1 from file_content where sha256 = $1', [
    Buffer.from(file.sha256, 'hex'),
  ])
  assert.equal(rows.length, 0)
  assert.equal((await maker.open(addressOf(await maker.urlOf(stored)))).name, 'kept.png')
})
