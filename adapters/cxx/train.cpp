// A program in C++ that trains on a folder of files (graft_data.h says which) and writes the model.
//
//     c++ train.cpp -o train $(pkg-config --cflags --libs graft)
//     ./train FOLDER MODEL
//
// SPDX-License-Identifier: Apache-2.0
#include "graft.hpp"

#include <iostream>

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    try {
        graft::context context; // finds libgraft.so.1
        context.set({ { "model", "sage" }, { "hidden", "16" }, { "layers", "2" } }).set("epochs", 30);
        graft::trainer trainer(graft::data(context, argv[1]));
        trainer.train([](const graft_epoch &epoch) { return epoch.loss < 0.01; }); // true ends the training early
        const std::vector<std::int32_t> classes = trainer.predict();               // predicted with the best weights
        trainer.save(argv[2]);

        std::cout << classes.size() << " vertices, test accuracy " << trainer.evaluate().test_accuracy << std::endl;
    } catch (const graft::error &failure) {
        std::cerr << failure.what() << std::endl;
        return 1;
    }
    return 0;
}
