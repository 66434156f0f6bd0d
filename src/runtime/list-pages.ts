import { isKubeError } from '../kube/errors.ts'
import type { KubeObject, ObjectList } from '../kube/object.ts'

/** Objects per page: client-go's page size. */
const pageSize = 500

/** Everything that existed at one moment. */
export interface Snapshot<T extends KubeObject> {
  readonly items: readonly T[]
  readonly version: string | undefined
}

/** Reads a full list page by page. Rejects with what `readPage` rejects with. */
export async function listPages<T extends KubeObject>(
  readPage: (page: { limit?: number; continue?: string }) => Promise<ObjectList<T>>,
): Promise<Snapshot<T>> {
  const first = await readPage({ limit: pageSize })
  const items = [...first.items]
  try {
    let next = first.metadata.continue
    while (next) {
      const page = await readPage({ limit: pageSize, continue: next })
      for (const item of page.items) items.push(item)
      next = page.metadata.continue
    }
  } catch (error) {
    if (!isKubeError(error, 'Expired')) throw error
    // That moment was compacted while its pages were read. One answer with everything cannot expire half-way.
    const all = await readPage({})
    return { items: all.items, version: all.metadata.resourceVersion }
  }
  // All pages show the same moment; should they not, watching from the first one's repeats events and loses none.
  return { items, version: first.metadata.resourceVersion }
}
