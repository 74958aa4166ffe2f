/** Mutex by key: runs of one key are serial, other keys run concurrently. */
export function keyedMutex() {
  const last = new Map<string, Promise<unknown>>()
  return <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const previous = last.get(key)
    const current = previous ? previous.then(work, work) : work()
    last.set(key, current)
    const release = () => {
      if (last.get(key) === current) last.delete(key)
    }
    current.then(release, release)
    return current
  }
}
