import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createCachedValue, createTtlCache } from './ttl-cache.ts'

/** A cache under a manual clock, and loads that end when the test says so. */
function cacheFixture({ entriesMax = 10 } = {}) {
  const clock = { ms: 1_000 }
  const cache = createTtlCache<string>({ ttlMs: 100, entriesMax, nowMs: () => clock.ms })
  const loads: PromiseWithResolvers<string>[] = []
  const load = () => {
    const pending = Promise.withResolvers<string>()
    loads.push(pending)
    return pending.promise
  }
  const loaded = async (key: string, value: string) => {
    const result = cache.get(key, load)
    loads.at(-1)!.resolve(value)
    await result
  }
  return { clock, cache, loads, load, loaded }
}

describe('a fresh value', () => {
  test('is returned until its time to live is over, counted from the start of the load', async () => {
    const { clock, cache, loads, load } = cacheFixture()
    const first = cache.get('a', load)
    clock.ms += 60
    loads[0]!.resolve('one')
    assert.equal(await first, 'one')
    clock.ms += 39
    assert.equal(await cache.get('a', load), 'one')
    assert.equal(cache.peek('a'), 'one')
    clock.ms += 1
    assert.equal(cache.peek('a'), undefined)
    const second = cache.get('a', load)
    loads[1]!.resolve('two')
    assert.equal(await second, 'two')
    assert.equal(loads.length, 2)
  })

  test('may be asked for at another age', async () => {
    const { clock, cache, loads, load, loaded } = cacheFixture()
    await loaded('a', 'one')
    clock.ms += 500
    assert.equal(await cache.get('a', load, { maxAgeMs: 501 }), 'one')
    assert.equal(loads.length, 1)
    void cache.get('a', load, { maxAgeMs: 500 })
    assert.equal(loads.length, 2)
  })

  test('does not become fresh for ever where the clock is set back', async () => {
    const { clock, cache, loaded } = cacheFixture()
    await loaded('a', 'one')
    clock.ms -= 1
    assert.equal(cache.peek('a'), undefined)
  })

  test('may be undefined', async () => {
    const cache = createTtlCache<undefined>({ ttlMs: 100, entriesMax: 1, nowMs: () => 0 })
    let loads = 0
    const load = async () => {
      loads += 1
      return undefined
    }
    await cache.get('a', load)
    await cache.get('a', load)
    assert.equal(loads, 1)
  })
})

describe('a load', () => {
  test('is shared by the callers of its key, and of no other', async () => {
    const { cache, loads, load } = cacheFixture()
    const all = [cache.get('a', load), cache.get('a', load), cache.get('b', load)]
    assert.equal(loads.length, 2)
    loads[0]!.resolve('a')
    loads[1]!.resolve('b')
    assert.deepEqual(await Promise.all(all), ['a', 'a', 'b'])
  })

  test('that fails reaches its callers, is not cached, and leaves the last value', async () => {
    const { clock, cache, loads, load, loaded } = cacheFixture()
    await loaded('a', 'one')
    clock.ms += 100
    const failed = [cache.get('a', load), cache.get('a', load)]
    loads[1]!.reject(new Error('away'))
    for (const each of failed) await assert.rejects(each, /away/)
    assert.equal(cache.peek('a'), undefined)
    assert.equal(cache.last('a'), 'one')
    void cache.get('a', load)
    assert.equal(loads.length, 3)
  })

  test('that throws before it waits leaves no load behind', async () => {
    const { cache, loads, load } = cacheFixture()
    const thrown = cache.get('a', () => {
      throw new Error('at once')
    })
    await assert.rejects(thrown, /at once/)
    void cache.get('a', load)
    assert.equal(loads.length, 1)
  })
})

describe('an invalidation', () => {
  test('keeps the value as the last one only', async () => {
    const { cache, loads, load, loaded } = cacheFixture()
    await loaded('a', 'one')
    cache.invalidate('a')
    assert.equal(cache.peek('a'), undefined)
    assert.equal(cache.last('a'), 'one')
    void cache.get('a', load)
    assert.equal(loads.length, 2)
  })

  test('during a load keeps its result out, whichever load ends first', async () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const { cache, loads, load } = cacheFixture()
      const before = cache.get('a', load)
      cache.invalidate('a')
      assert.equal(cache.last('a'), undefined)
      const after = cache.get('a', load)
      assert.equal(loads.length, 2)
      for (const at of order) {
        loads[at]!.resolve(['stale', 'current'][at]!)
        await [before, after][at]
      }
      assert.equal(await before, 'stale')
      assert.equal(await after, 'current')
      assert.equal(cache.peek('a'), 'current')
    }
  })

  test('during a load without a later one leaves nothing', async () => {
    const { cache, loads, load } = cacheFixture()
    const before = cache.get('a', load)
    cache.invalidate('a')
    loads[0]!.resolve('stale')
    assert.equal(await before, 'stale')
    assert.equal(cache.peek('a'), undefined)
    assert.equal(cache.last('a'), undefined)
  })

  test('of everything keeps the results of all loads out', async () => {
    const { cache, loads, load, loaded } = cacheFixture()
    await loaded('a', 'one')
    const before = cache.get('b', load)
    cache.clear()
    loads[1]!.resolve('stale')
    await before
    assert.deepEqual([cache.last('a'), cache.last('b')], [undefined, undefined])
  })
})

describe('a forced load', () => {
  test('starts beside a fresh value and beside a load, and overtakes both', async () => {
    const { cache, loads, load, loaded } = cacheFixture()
    await loaded('a', 'one')
    const first = cache.get('a', load, { force: true })
    const second = cache.get('a', load, { force: true })
    assert.equal(loads.length, 3)
    loads[2]!.resolve('three')
    assert.equal(await second, 'three')
    loads[1]!.resolve('two')
    assert.equal(await first, 'two')
    assert.equal(cache.peek('a'), 'three')
  })
})

test('the oldest key is evicted beyond the limit', async () => {
  const { cache, loaded } = cacheFixture({ entriesMax: 2 })
  await loaded('a', '1')
  await loaded('b', '2')
  cache.peek('a')
  await loaded('c', '3')
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => cache.peek(key)),
    ['1', undefined, '3'],
  )
})

test('a cached value is loaded once per time to live, and again after its invalidation', async () => {
  let loads = 0
  const clock = { ms: 0 }
  const value = createCachedValue(async () => ++loads, { ttlMs: 100, nowMs: () => clock.ms })
  assert.deepEqual(await Promise.all([value.get(), value.get()]), [1, 1])
  clock.ms = 99
  assert.equal(await value.get(), 1)
  value.invalidate()
  assert.equal(value.last(), 1)
  assert.equal(await value.get(), 2)
  assert.equal(await value.get({ force: true }), 3)
})

test('values count by their size, and one beyond the bound is not kept', async () => {
  const cache = createTtlCache<string>({
    ttlMs: 100,
    entriesMax: 10,
    sizeOf: ({ length }) => length,
    nowMs: () => 0,
  })
  for (const value of ['aaaa', 'bbbb', 'cccc', 'd'.repeat(11)]) await cache.get(value[0]!, async () => value)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => cache.peek(key)),
    [undefined, 'bbbb', 'cccc', undefined],
  )
})
