import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NetReply } from '#kernel/wire/upstream-http.ts'
import { assessmentOf } from './token-security.ts'
import { createTokenReports, isShareUsedUp } from './token-security-reports.ts'

const chain = { id: '1', family: 'evm' } as const
const turnOf = (user: string) => ({ user, isTrade: true })
const turn = turnOf('user')

function reportsFixture(reply: () => NetReply, requestsPerMinute = 100) {
  const clock = { ms: 0 }
  let requests = 0
  const reports = createTokenReports(
    {
      source: 'service',
      covers: () => true,
      urlOf: (_, address) => `http://service/${address}`,
      assess: () => assessmentOf('service', []),
    },
    {
      requestsPerMinute,
      nowMs: () => clock.ms,
      net: {
        fetch: async () => {
          requests += 1
          return reply()
        },
      },
    },
  )
  return { clock, reports, count: () => requests }
}

test('an answer is kept for half a minute, and a failure is not', async () => {
  let status = 500
  const { clock, reports, count } = reportsFixture(() => ({ status, body: '{}' }))
  await assert.rejects(reports.report(chain, 'a', turn), { code: 'unavailable' })
  status = 200
  await reports.report(chain, 'a', turn)
  clock.ms = 29_999
  await reports.report(chain, 'a', turn)
  assert.equal(count(), 2)
  clock.ms = 30_000
  await reports.report(chain, 'a', turn)
  assert.equal(count(), 3)
})

test('after 429 the service is left alone for as long as it asks, a minute at most', async () => {
  const { clock, reports, count } = reportsFixture(() => ({ status: 429, body: '', retryAfterMs: 900_000 }))
  await assert.rejects(reports.report(chain, 'a', turn), /429/)
  clock.ms = 59_999
  await assert.rejects(reports.report(chain, 'b', turn), /limits our requests/)
  assert.equal(count(), 1)
  clock.ms = 60_000
  await assert.rejects(reports.report(chain, 'b', turn), /429/)
  assert.equal(count(), 2)
})

test('requests beyond the budget of a minute are not sent', async () => {
  const { clock, reports, count } = reportsFixture(() => ({ status: 200, body: '{}' }), 2)
  await Promise.all(['a', 'b'].map((each) => reports.report(chain, each, turnOf(each))))
  await assert.rejects(reports.report(chain, 'c', turnOf('c')), /used up/)
  assert.equal(count(), 2)
  clock.ms = 60_000
  await reports.report(chain, 'c', turnOf('c'))
})

test('a user without a share left keeps no report from another one who asks at the same time', async () => {
  const { reports, count } = reportsFixture(() => ({ status: 200, body: '{}' }), 8)
  for (const each of ['a', 'b']) await reports.report(chain, each, turn)
  const [own, other] = ['user', 'other'].map((user) => reports.report(chain, 'c', turnOf(user)))
  await assert.rejects(own!, isShareUsedUp)
  await other
  assert.equal(count(), 3)
  await reports.report(chain, 'c', turn)
  assert.equal(count(), 3, 'a report that is known needs no share')
  await assert.rejects(reports.report(chain, 'd', { user: 'user', isTrade: true }), isShareUsedUp)
})

test('a page instead of JSON is an unavailable service', async () => {
  const { reports } = reportsFixture(() => ({ status: 200, body: '<html>' }))
  await assert.rejects(reports.report(chain, 'a', turn), { code: 'unavailable' })
})
