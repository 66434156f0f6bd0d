import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitUntil } from '../../devcluster/wait.ts'
import type { Product } from '../../devcluster/product.ts'

/** A configuration file that a running product follows. */
export interface ConfigurationFile {
  readonly path: string
  /** Replaces the file and resolves once the product says that the new configuration is in force. */
  use(product: Product, config: object): Promise<void>
}

/** Makes `config.yaml` in `folder`, empty at first. JSON is YAML. */
export async function configurationFile(folder: string): Promise<ConfigurationFile> {
  const path = join(folder, 'config.yaml')
  let text = '{}'
  await writeFile(path, text)
  return {
    path,
    async use(product, config) {
      const next = JSON.stringify(config)
      if (next === text) return
      text = next
      const before = await reloads(product)
      await writeFile(`${path}.new`, text)
      await rename(`${path}.new`, path)
      await waitUntil('the new configuration', async () => (await reloads(product)) > before, { withinMs: 30_000 })
    },
  }
}

async function reloads(product: Product): Promise<number> {
  return (await product.log()).split('another configuration is in force').length
}
